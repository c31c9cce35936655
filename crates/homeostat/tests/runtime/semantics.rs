//! What Go's controller-runtime and client-go do that users can see, and which test says what
//! happens here; then their known traps, each with the test that nobody falls into it. Tests without
//! a module are here; `queue`, `watch`, `cache`, `hotloop`, `lease`, `event`, `condition`,
//! `webhook`, `client`, `predicate` and `launch` are unit tests of the crate, the others modules of this one.
//! `cargo xtask tidy` finds tests that are named here and are not there.
//!
//! | what they do | test |
//! |---|---|
//! | queue: one entry per key, never on two workers, once more if added meanwhile | `queue::a_key_is_never_with_two_workers_and_runs_once_more_when_added_meanwhile`, on several threads `threads::*` |
//! | queue: shutdown drains or drops, and ends every worker | `queue::end::*`, `isolation::a_stop_lets_a_running_reconcile_finish_and_starts_no_other` |
//! | queue: delays, the earlier wins, an event consumes them | `queue::of_two_timers_the_earlier_wins`, `queue::an_event_consumes_a_pending_requeue` |
//! | queue: rate limits per key and for all; what is forgotten costs nothing | `queue::a_failing_key_waits_one_two_four_up_to_three_hundred_seconds`, `queue::a_rate_spreads_keys_out_after_a_burst`, `queue::a_key_that_is_well_costs_no_memory` |
//! | queue: metrics | `lifecycle::queues_are_counted_under_the_names_that_dashboards_know` |
//! | queue: fair, here between namespaces | `isolation::a_namespace_with_many_objects_holds_up_no_other` |
//! | queue: priorities | `queue::events_go_before_the_first_list_but_never_starve_it`, `queue::a_key_of_the_first_list_that_polls_is_not_low_for_ever`, `wakeups::a_change_goes_before_what_the_first_list_has_left_to_do` |
//! | reconciler: function or type | `trouble::a_reconciler_may_be_a_type_of_its_own` |
//! | `AsReconciler`: the object is fetched, and one that is gone is no error | `isolation::not_finding_the_primary_is_no_error` |
//! | bounded retries with a dead-letter hook (wished for there) | `sets::a_key_that_fails_too_often_is_given_up_until_it_changes`; of a queue by hand an example of `Queue::failures` |
//! | results and errors | `contract::*` |
//! | `RetryOnConflict` | `contract::a_conflict_is_a_quick_retry_and_no_failure`, `contract::a_write_to_what_somebody_changed_meanwhile_is_such_a_conflict`, `contract::endless_conflicts_become_failures` |
//! | an event cuts a backoff short, and an edit always | `queue::an_event_that_consumes_a_backoff_does_not_inflate_it`, `queue::a_key_that_fails_and_is_chatty_still_backs_off`, `panics::an_edit_ends_the_backoff_of_a_key_whose_decoder_panicked_however_many_events_came_before` |
//! | concurrency, panics, timeouts | `isolation::one_key_is_never_on_two_workers_and_others_run_beside_it`, `crew::as_many_reconciles_as_are_allowed_run_at_once`, `isolation::a_panic_is_a_failure_of_its_key_alone`, `isolation::a_reconcile_that_takes_too_long_is_dropped_and_tried_again` |
//! | a cache that does not sync | `sources::a_kind_that_is_missing_holds_back_only_its_own_controller`, `lifecycle::a_kind_that_is_forbidden_is_said_in_words_until_it_is_allowed` |
//! | definitions that an administrator installs, or nobody yet | `permissions::a_definition_that_one_may_not_install_is_waited_for_and_used_as_others_install_it`, `health::a_definition_that_is_invalid_is_an_error_at_once`, `definitions::*` |
//! | names are unique, in a manager only | `two_controllers_of_one_name_are_refused_and_two_managers_share_nothing`, `events::a_controller_whose_name_events_cannot_carry_is_refused_at_the_start` |
//! | For, Owns, Watches, raw sources | `children::a_child_is_applied_once_corrected_when_it_drifts_and_followed_by_its_owner`, `sources::a_watched_kind_wakes_the_keys_it_names_before_and_after`, `wakeups::*` |
//! | predicates and how they combine | `predicate::*`, `sources::filters_and_label_scopes_keep_changes_away`, `a_second_filter_narrows_the_first` |
//! | owners: in the same namespace, or cluster-scoped | `strangers::a_child_that_its_owner_may_not_have_is_a_terminal_error_and_not_written`, `sets::a_cluster_scoped_child_that_names_a_namespace_is_kept_and_found` |
//! | owners: by uid, before and after, cluster-scoped, every one or the controller | `selections::every_owner_is_woken_where_that_is_asked_for`, `a_child_that_changes_hands_wakes_both_owners`, `a_cluster_scoped_owner_is_woken_and_its_events_are_in_the_default_namespace` |
//! | list and watch, fallbacks, relists, backoff | `watch::*`, `gaps::a_server_without_streaming_lists_is_read_in_pages_and_relists_are_exact` |
//! | store, indexes, late handlers, waits | `cache::*`, `informer::*`, `launch::who_joins_a_cache_that_is_full_works_when_it_has_heard_of_all_that_is_there` |
//! | a mutation detector | cannot be written: what is read from a cache is in an `Arc`, and who changes it has a copy |
//! | reads from the cache or not | `sources::kinds_that_were_not_declared_are_read_from_the_api`, `sources::a_list_of_this_moment_does_not_wait_for_the_cache_and_is_not_answered_by_it` |
//! | which cluster: kubeconfig, context, proxy | `configuration`, `client::a_proxy_*`, `client::a_socks_proxy_is_spoken_to_in_its_own_way` |
//! | selectors and transforms of caches | `selections::*`, `trouble::what_a_manager_transforms_away_is_not_cached_and_costs_no_writes` |
//! | warnings of the API are logged | `spans::requests_have_spans_and_what_the_api_warns_of_is_told_once` |
//! | writes: create, update, patch, apply, delete with preconditions | `children::*`, `patches::*`, `replaces::*`, `deletes::*`, `a_delete_meant_for_an_earlier_object_spares_its_successor` |
//! | servers that serve only while leading (`OnlyServeWhenLeader`), by `Runnable::while_leading` | `lifecycle::leader_work_runs_in_each_term_and_writes_nothing_outside` |
//! | CreateOrUpdate, controller references (with `blockOwnerDeletion`) | `children::*`, `defaults_of_the_server_are_no_drift` |
//! | finalizers | `status::a_finalizer_holds_the_object_until_its_cleanup_has_run`, `status::a_cleanup_never_takes_the_finalizers_of_a_namesake`, `several_finalizers_are_cleaned_up_in_the_order_they_are_asked_for`, `finalizers::*`, of things outside `outside::an_object_with_two_things_outside_takes_both_with_it` |
//! | conditions | `condition::*`, `status::*` |
//! | events: series, spam filter, lost events, written before the end | `trouble::what_was_recorded_before_a_stop_is_written_and_too_much_is_counted`, `status::repeated_events_are_one_event_with_a_count`, `event::*`, `trouble::a_series_of_events_goes_on_after_its_event_was_deleted`, `events::*` |
//! | leader election, and controllers that need none | `lease::*`, `leader::*`, `leader::a_controller_without_lease_works_and_writes_whoever_leads` |
//! | a stop within `terminationGracePeriodSeconds` | `leader::a_stop_fits_the_time_that_a_pod_is_given_and_the_lease_is_free_after_it` |
//! | names of metrics, those of the process too | `metrics::every_metric_has_its_name_and_there_is_no_other`, `metrics::process::*`, `health::probes_and_scrapers_are_answered_over_http` |
//! | rules of RBAC | `permissions::*` |
//! | 429 and `Retry-After` | `busy::*`, `client::a_busy_server_is_asked_again_when_it_says` |
//! | unstructured objects, metadata alone, field indexes | `kinds::*`, `partial::*` |
//! | several namespaces, here also ones that change | `namespaces::*` |
//! | who runs and why, in every line of the log | `spans::*` |
//! | certificates of webhooks | `webhook::*`, `webhooks`, `webhooks::refusal::*` |
//! | start and stop order, runnables, servers, health, signals | `lifecycle::*`, `health::*`, `webhooks::a_manager_that_converts_a_kind_itself_can_fill_its_cache_of_it`, `webhooks::restart::a_manager_that_installs_and_converts_a_kind_starts_again_with_objects_of_the_old_version`, `isolation::a_stop_drops_what_does_not_finish_within_the_grace`, `webhooks::stop::*`, `signals` |
//!
//! | trap | test |
//! |---|---|
//! | a stale cache after a write | `selections::a_cache_that_stays_behind_is_a_quick_retry_and_nothing_is_made_twice`, `children::what_a_reconcile_wrote_it_reads_so_it_never_makes_too_many`, `children::what_a_reconcile_deleted_it_does_not_read`, `children::what_was_made_and_deleted_at_once_is_not_shown_by_a_cache_that_lags` |
//! | several caches of one kind that disagree | `selections::who_is_woken_by_one_cache_finds_the_reason_in_another`, `partial::who_is_woken_by_the_metadata_of_a_primary_reads_that_version_of_the_whole`, `selections::a_primary_that_leaves_the_selection_in_a_reconcile_that_writes_it_is_not_waited_for` |
//! | an object outside the cache's selection is waited for | `selections::what_a_selection_leaves_out_is_not_cached_and_still_read`, `selections::an_index_of_a_selection_does_not_wait_for_what_the_selection_leaves_out` |
//! | an API that is late at the start ends the process | `health::an_api_that_has_no_time_at_the_start_is_waited_for_and_probes_are_answered_meanwhile`, `health::an_api_that_is_away_for_minutes_at_the_start_is_named_by_the_readiness_and_ends_nothing`, `webhooks::refusal::*` |
//! | what is followed in a namespace that leaves the set, and is not there yet | `namespaces::who_follows_what_is_not_there_yet_hears_of_it_after_its_namespace_has_left_the_set` |
//! | a read that starts a watch | `a_read_never_starts_a_watch` |
//! | a generation or label filter that hides deletions and namesakes | `predicate::a_namesake_and_a_deletion_pass_though_the_generation_is_the_same`, `predicate::a_deletion_passes_a_label_filter_that_the_object_has_left` |
//! | a generation filter under which a status that is wiped stays so | `status::a_status_that_somebody_wipes_is_said_again_where_changes_of_it_pass`, `status::a_filter_on_the_generation_alone_does_not_hear_of_a_status_that_is_wiped` |
//! | a filter that keeps what is remembered of a deleted object for its namesake | `sources::a_filter_that_stops_deletions_does_not_keep_the_memory_for_a_namesake` |
//! | an object that is made anew and pays for what its namesake failed for | `mending::an_object_that_is_made_anew_does_not_wait_for_what_its_namesake_failed_for`, `mending::an_object_that_takes_the_place_of_another_in_the_middle_of_a_reconcile_has_all_its_attempts`, `mending::an_object_that_cannot_be_decoded_pays_for_nothing_that_its_namesake_failed_for` |
//! | filters that see one side only | `wakeups::filters_of_other_kinds_see_the_object_before_and_after`, `informer::an_object_that_leaves_the_selection_is_told_as_deleted` |
//! | an error with a requeue time | cannot be written: `Result<Outcome, Error>` |
//! | a terminal error that keeps its backoff; the first retry after 5 ms | `contract::a_terminal_error_waits_for_a_change_and_forgets_the_failures`, `contract::failures_back_off_from_one_second_to_five_minutes_and_success_forgets_them`, `contract::keys_that_fail_together_are_not_retried_together_unless_told_so` |
//! | a condition that is lost because the API was away when it was due | `marks::*` |
//! | two controllers of one kind that take back each other's conditions, for ever | `voices::*` |
//! | low priority that starves or sticks | the two of the queue's priorities above |
//! | a panic in a handler, a map, a predicate, a transform, an index, a decoder, a source, a dead-letter hook | `panics::*`, `cache::a_late_handler_is_told_what_is_there_and_a_panicking_one_harms_nobody`, `wakeups::a_map_that_fails_or_panics_is_asked_again_until_it_answers`, `wakeups::a_map_that_waits_is_asked_again_when_it_panics_or_never_answers`, `predicate::one_that_panics_lets_the_change_through` |
//! | `CreateOrPatch`: object and status in two writes, of which the second may be lost | `an_apply_is_one_write_and_leaves_the_status_alone` |
//! | a delete by name that takes a stranger's object, and one that is refused and counts as done | `deletes::a_strangers_object_that_has_the_name_of_a_child_is_not_deleted`, `deletes::a_refusal_to_delete_what_is_still_there_is_no_success`, `deletes::who_may_delete_and_not_look_tries_again_soon_when_it_is_refused` |
//! | an update over what somebody else wrote | `replaces::a_replacement_of_what_somebody_changed_meanwhile_is_a_quick_retry_from_fresh_state`, `replaces::what_was_not_read_cannot_replace_anything` |
//! | updates that fight the server's defaults | `defaults_of_the_server_are_no_drift`, `restless::*` |
//! | a fight over an object that is in no cache | `restless::a_fight_over_an_object_of_a_kind_that_nobody_declared_is_told_by_its_field`, `restless::to_ask_for_what_is_there_already_is_no_fight_however_often_others_write_the_object` |
//! | owners by name | `a_child_that_changes_hands_wakes_both_owners`, `context::owner` |
//! | a second predicate replaces the first | `a_second_filter_narrows_the_first` |
//! | lists in random order | `cache::typed_reads_get_list_and_select` |
//! | a `Limit` that cuts a cached list anywhere, and a continue token that leads nowhere | cannot be written: a list of the context is whole and takes no limit |
//! | bookmarks that are turned off under a streaming list, which then has no end | cannot be written: `watch::a_streaming_list_becomes_the_watch` asks for them every time |
//! | a server that never ends the initial events, or whose proxy never passes them on | `watch::a_server_that_ignores_the_wish_for_initial_events_is_read_in_pages`, `watch::a_list_that_breaks_again_and_again_while_it_streams_is_read_in_pages` |
//! | a lost leader that goes on, or has to exit | `leader::a_leader_that_cannot_renew_writes_nothing_more_and_may_lead_again`, `lifecycle::a_runnable_that_wraps_the_lost_lease_runs_again_in_the_next_term` |
//! | probes that know nothing, of the lease neither | `leader::a_lease_that_nobody_can_reach_is_said_in_the_readiness`, `leader::a_lease_in_a_namespace_that_is_not_there_is_said_in_the_readiness`, `leader::who_may_read_the_lease_but_not_write_it_is_not_ready`, `health::a_missing_definition_is_said_in_words_until_it_is_there`, `namespaces::primaries_selected_by_name_in_several_namespaces_are_in_the_readiness`, `lifecycle::a_check_of_ones_own_is_part_of_the_readiness` |
//! | two webhooks at one path | `webhook::two_at_one_path_are_refused` |
//! | a defaulter that drops fields its type does not know, or changes one whose parent is not there | `webhook::a_change_touches_only_what_the_handler_changed`, `webhook::a_change_in_a_field_that_the_object_left_out_can_be_applied` |
//! | a lease that is deleted under its leader | `lease::there_are_never_two_leaders`, `lease::a_lease_that_is_deleted_is_made_anew_by_its_leader_and_by_others_once_its_time_is_up` |
//! | a lease given back while something still works | `leader::the_lease_goes_last_after_reconciles_and_events`, `leader::a_worker_that_outlives_the_grace_writes_nothing_once_another_leads` |
//! | a cold process that takes the lease from a warm one | `leader::who_cannot_fill_its_caches_lets_others_lead`, `leader::who_cannot_fill_all_its_caches_leads_when_nobody_else_does` |
//! | a process that waits for the lease and remembers all that came and went meanwhile | `leader::a_process_that_does_not_lead_remembers_only_what_is_there` |
//! | a restored server whose versions begin again | `history::what_was_written_before_the_history_was_replaced_is_not_waited_for` |
//! | checks that can only be added before the start | `lifecycle::a_check_may_come_later_and_one_that_panics_is_a_problem_in_words` |
//! | slow handlers whose buffers grow | `informer::a_handler_that_blocks_holds_up_its_own_informer_alone_and_little_is_kept_for_it` |
//! | a primary that is older than what its last reconcile wrote, as there are two caches of its kind | `partial::a_reconcile_is_given_what_it_wrote_last_also_where_it_reads_its_kind_from_another_cache` |
//! | typed and unstructured copies of one kind | `kinds::a_typed_and_a_dynamic_view_of_one_kind_share_one_watch` |
//! | a connection whose other end is gone | `client::a_body_whose_server_is_gone_breaks_within_a_minute`, `client::the_system_gives_up_a_connection_whose_other_end_is_gone_within_a_minute`, `isolation::an_answer_that_stalls_after_its_header_costs_one_reconcile_its_time` |
//! | answers that nobody reads and that hold up all others of their connection | `client::answers_that_nobody_reads_hold_up_no_other` |
//! | global state | `two_controllers_of_one_name_are_refused_and_two_managers_share_nothing` |
//!
//! What they have and this runtime leaves out, and why.
//!
//! | left out | why |
//! |---|---|
//! | controllers outside a manager, stopping one of several, watches that are added or removed later | a manager with one controller is small: start and stop that; `Namespaces` and `Context::follow` change what is watched; `cache` and `queue` are for loops by hand |
//! | a queue or rate limiter of one's own in a controller | `Rules` has what they are used for: backoff, rate, lanes, debounce; `Queue` is public |
//! | requests of a type of one's own (`TypedReconciler`) | a reconcile is about its primary, which is its key; `Queue` takes keys of any type, for loops by hand |
//! | a concurrency for all controllers of a manager, or by kind | each says its own (`Controller::concurrency`), 4 if it says none; workers that are not needed cost nothing |
//! | a filter for every watch of a controller (`WithEventFilter`) | what is news differs by kind: `filter` is about the primary, `owns_when`, `watches_when` and `Related::when` about the others; a `Predicate` can be cloned to all |
//! | a logger of one's own for a controller (`WithLogConstructor`) | every line is in a span with controller, object, id and trigger; a reconcile opens one of its own for more, and a `tracing` subscriber decides how all of it looks |
//! | namespaces of a single kind (`ByObject.Namespaces`) | a controller has its namespaces, for all its kinds, and two controllers of a manager may differ; what is elsewhere is read from the API, or followed by name |
//! | more than two priorities, `Result.Priority` | the first list and `background` go behind the rest, and one turn in nine is theirs; nobody has to choose numbers |
//! | resync (`SyncPeriod`) | a relist tells exact differences, so nothing is missed that a resync would find; `RequeueAfter` for what is outside |
//! | `RetryWatcher`, `UntilWithSync` | an `Informer` watches on by itself and is told whom to tell (`subscribe`); `wait_for_object`, `wait_for_revision` and `wait_for_state` wait with it |
//! | `ResourceVersionChanged`, to tell an update from a resync | there are no resyncs: every update is a change |
//! | a check of the expected type, `WatchErrorHandler`, a transform for all kinds (`DefaultTransform`) | an object is cached as one of the kind that was asked for, and Tables are not asked for; the readiness says what is wrong with a source, the log too; `Manager::transform_of` for each kind |
//! | reads that need not wait for what was written (`DisableReadYourWritesConsistency`), or wait for another time | who reads a stale cache makes things twice; a read waits only for what its own key wrote, mostly no time at all, and after 5 s there is a quick retry; `Context::get_live` and `list_live` do not wait, they ask the API |
//! | `FieldValidation` | the API's own default (warnings, which are logged); types know their fields, and `Context::client` sends any parameter |
//! | a dump of the queue in the log | the metrics have its depth, its longest wait and its lanes' workers; `Queue` can be asked |
//! | stores whose entries expire | what is cached follows a watch and does not grow old |
//! | aggregation of similar events, annotations on events (`AnnotatedEventf`) | events.k8s.io/v1 has series, and `related` and `action` for more words |
//! | `DeleteAllOf`, dry run, evictions, tokens through the context | `Context::client` sends whatever `kube` knows, through the same fence, limits and metrics |
//! | clients around a client: dry run, one namespace, a field owner, interceptors | a `kube::Client` is a `tower` service: a layer around it sees every request (`Manager::new`), as the faults of these tests do; the namespace is the primary's and the field manager the controller's name |
//! | `ParallelizeUntil` | `futures::future::join_all` within a reconcile, `concurrency` between them |
//! | a ready-made server as a runnable | a `Runnable` takes any future, a server's too, and the probes and webhooks have theirs |
//! | a RESTMapper | a `Kind` says its plural; `Kind::discover` asks the API |
//! | owner references without `controller` | what several own is nobody's to correct; `Related::owned_by_any` reads those that others wrote |
//! | owner references without `blockOwnerDeletion` (`WithBlockOwnerDeletion`) | it matters only where an owner is deleted in the foreground, which is to wait for its children |
//! | a second cluster in one manager | two managers: they share nothing |
//! | runnables that are added after the start | `tokio::spawn` |
//! | one watch for the metadata of a kind and for its whole objects | who asks for metadata alone is not to be sent the rest because somebody else needs it; a kind that is watched in both forms is read from the whole one, which has what woke the key (`partial::*`) |
//! | ageing of priorities | one turn in nine bounds every wait by the length of the queue, and needs no clock |
//! | several indexes of one kind asked at once | `by_index` and a filter over what it found |
//! | a hook that makes informers (`NewInformer`), kinds in protobuf | JSON is kept packed; a `kube::Client` with a layer of its own sees every watch |
//! | taking an owner reference away (`RemoveControllerReference`, `RemoveOwnerReference`) | what is no longer wanted is pruned or deleted; `Context::patch` sets a child free |
//! | a lock other than a Lease, a client of its own for it | there is no other kind of lock left; the lease has requests and limits of its own on the manager's client |
//! | metrics over TLS with authentication, pprof | a sidecar or the mesh does the first, the system's own profilers the second |
//! | `?verbose`, `?exclude=` and single checks of `/readyz`, handlers of one's own there (`ExtraHandlers`) | it always names every check; a `Runnable` serves whatever else is wanted |
//! | a grace of 0 or for ever | any `Duration` |
//! | labels on the lease, `OnNewLeader` | others may label it, a renewal leaves that alone (`leader::a_lease_is_held_in_the_name_of_its_host_and_keeps_what_others_label_it_with`); who leads is a line of the log |
//! | coordinated leader election | its API is not stable and off by default, and controller-runtime leaves it out, too; who takes over is decided by whose caches are warm |
//! | the label `priority` of `workqueue_depth` | there are two priorities, of which one is empty but at the start |
//! | `go_*` | there is no Go: no collector and no goroutines to tell of |
//! | the other `rest_client_*` that can be asked for: name resolution, sizes, waits, retries | every try is counted and timed by itself (`rest_client_requests_total`, `rest_client_request_duration_seconds`), and nothing waits for a limiter of the client's |
//! | metrics of certificates, panics of webhooks | the readiness says when a certificate cannot be renewed; a webhook that panics is counted by its code |
//! | in-cluster credentials before `~/.kube/config` | few Pods have one, and who puts it there means it |
//!
//! And the defects of kube-rs 5 that keep its runtime out of this one.
//!
//! | defect | test |
//! |---|---|
//! | a: an error at the start of a watch never leads to a list | `watch::gone_at_the_start_of_a_watch_lists_again` |
//! | b: what vanished during a gap is never told as deleted, and its owner sleeps on | `watch::whatever_vanished_during_a_gap_is_told_as_deleted`, `cache::a_list_becomes_exact_deltas`, `gaps::a_child_that_vanished_during_a_gap_wakes_its_owner` |
//! | c: one undecodable object stops the list of all, or leaves the store stale without a word | `watch::one_unreadable_object_never_stops_the_others`, `watch::unreadable::*`, `panics::what_was_cached_before_its_transform_panicked_stays_and_is_said_to_be_old`, `trouble::a_primary_that_does_not_fit_its_type_is_reported_once` |
//! | d: an expired page token begins from the start, page by page | `watch::an_expired_page_token_leads_to_a_list_in_one_piece`, `watch::a_list_that_cannot_come_in_one_piece_is_asked_for_in_pages_again` |
//! | e: the cache travels back in time | `watch::a_lagging_server_never_takes_the_cache_back_in_time`, `cache::an_older_version_never_replaces_a_newer_one` |
//! | one backoff for all watches | `gaps::a_watch_that_begins_to_fail_slows_no_other`, `cache::a_source_that_fails_does_not_slow_another`, `sources::a_kind_that_is_missing_holds_back_only_its_own_controller` |
//! | of those who wait for a cache one is woken | `cache::every_waiter_wakes_when_the_cache_is_in_sync` |
//! | a subscriber whose object is gone is never polled again | `wakeups::a_subscriber_whose_object_is_gone_hears_of_the_next_one` |
//! | a panic ends the controller | `isolation::a_panic_is_a_failure_of_its_key_alone` |
//! | a debounce without an end | `queue::a_key_that_is_never_quiet_runs_all_the_same` |
//! | a random order | `replay::the_same_seed_gives_the_same_journal_and_another_seed_another` |
//! | no retry counter, no time-out | `contract::failures_back_off_from_one_second_to_five_minutes_and_success_forgets_them`, `isolation::a_reconcile_that_takes_too_long_is_dropped_and_tried_again` |
//!
//! Queue (against a naive model), watch machine and lease machine are property-tested with 10,000
//! cases each: `queue::model`, `watch::model`, `lease::tests`.

use std::sync::{Arc, Mutex};

use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use homeostat::{Context, Controller, EventType, Outcome, Predicate, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::cluster::{config, endings, idle, object, on_cluster, secret, triggers};

#[test]
fn two_controllers_of_one_name_are_refused_and_two_managers_share_nothing() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let twin = || Controller::new(idle::<ConfigMap>).namespace(&cluster.namespace);
        let error = cluster.manager().with(twin()).with(twin()).start().await.unwrap_err();
        assert!(error.to_string().contains("two controllers are named `configmap`"), "{error}");

        let first = cluster.manager().with(twin()).start().await.unwrap();
        let second = cluster.manager().with(twin()).start().await.unwrap();
        cluster.runs(&first.journal(), 1).await;
        cluster.runs(&second.journal(), 1).await;
        let line =
            "controller_runtime_reconcile_total{controller=\"configmap\",result=\"success\"} 1";
        for running in [first, second] {
            assert_eq!(running.journal().total(), 1);
            assert!(running.metrics().contains(line));
            running.stop().await.unwrap();
        }
    });
}

#[test]
fn a_second_filter_narrows_the_first() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let controller = Controller::new(idle::<ConfigMap>);
        let controller = controller.filter(Predicate::labels_changed());
        let controller = controller.filter(Predicate::annotations_changed());
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let patch = async |metadata| {
            cluster.patch::<ConfigMap>("a", json!({ "metadata": metadata })).await;
        };
        patch(json!({ "labels": { "x": "1" } })).await;
        patch(json!({ "annotations": { "x": "1" } })).await;
        patch(json!({ "labels": { "x": "2" }, "annotations": { "x": "2" } })).await;
        cluster.runs(&journal, 2).await;
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 2, "{journal}");
    });
}

#[test]
fn a_child_that_changes_hands_wakes_both_owners() {
    on_cluster(async |cluster| {
        let mut uids = Vec::new();
        for name in ["a", "b"] {
            uids.push(cluster.create(&config(name, "1")).await.uid().unwrap());
        }
        let owned = |name: &str, uid: &str| {
            json!({ "metadata": { "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true,
            }]}})
        };
        cluster.create(&secret("child", "1")).await;
        cluster.patch::<Secret>("child", owned("a", &uids[0])).await;
        let running = cluster.start(Controller::new(idle::<ConfigMap>).owns::<Secret>()).await;
        let journal = running.journal();
        cluster.nothing_more().await;
        let before = journal.records().len();
        cluster.patch::<Secret>("child", owned("b", &uids[1])).await;
        let records = cluster.runs(&journal, before + 2).await;
        let woken: Vec<&str> = records[before..].iter().map(|record| record.key.name()).collect();
        assert_eq!(woken, ["a", "b"]);

        // Another object of the owner's name, of an earlier life, is not the owner.
        cluster.patch::<Secret>("child", owned("a", "an-earlier-one")).await;
        let records = cluster.runs(&journal, before + 3).await;
        assert_eq!(records[before + 2].key.name(), "b");
        cluster.nothing_more().await;
        assert_eq!(journal.records().len(), before + 3, "{journal}");
    });
}

#[test]
fn a_cluster_scoped_owner_is_woken_and_its_events_are_in_the_default_namespace() {
    on_cluster(async |cluster| {
        async fn note(namespace: Arc<Namespace>, context: Context<Namespace>) -> Result<Outcome> {
            let mut child = config("note", "1");
            child.metadata.namespace = namespace.metadata.name.clone();
            context.apply(child).await?;
            context.event(EventType::Normal, "Noted", format!("in {}", namespace.name_any()));
            Ok(Outcome::Done)
        }
        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        let label = json!({ "metadata": { "labels": { "noted": cluster.namespace } } });
        let patch = Patch::Merge(label);
        namespaces.patch(&cluster.namespace, &PatchParams::default(), &patch).await.unwrap();
        let controller = Controller::new(note).owns::<ConfigMap>();
        let controller = controller.labels(&format!("noted={}", cluster.namespace));
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        let journal = running.journal();
        cluster.until_one::<ConfigMap>("note", "the child", |_| true).await;
        cluster.nothing_more().await;
        let before = journal.records().len();
        cluster.patch::<ConfigMap>("note", json!({ "data": { "value": "2" } })).await;
        let records = cluster.runs(&journal, before + 1).await;
        let words = triggers(&records[before]);
        assert_eq!(words, format!("ConfigMap {}/note updated", cluster.namespace));
        assert_eq!(records[before].key.to_string(), cluster.namespace);
        running.stop().await.unwrap();
        let events: Api<Event> = Api::namespaced(cluster.client.clone(), "default");
        let mut told = events.list(&ListParams::default()).await.unwrap().items;
        told.retain(|event| event.note.as_deref() == Some(&*format!("in {}", cluster.namespace)));
        assert_eq!(told.len(), 1);
    });
}

#[test]
fn a_delete_meant_for_an_earlier_object_spares_its_successor() {
    on_cluster(async |cluster| {
        let earlier = Arc::new(Mutex::new(cluster.create(&secret("victim", "1")).await));
        cluster.api::<Secret>().delete("victim", &DeleteParams::default()).await.unwrap();
        let successor = cluster.create(&secret("victim", "2")).await;
        cluster.create(&config("a", "1")).await;
        let reconcile = move |_: Arc<ConfigMap>, context: Context<ConfigMap>| {
            let earlier = earlier.lock().unwrap().clone();
            async move {
                context.delete(&earlier).await?;
                Ok(Outcome::Done)
            }
        };
        let running = cluster.start(Controller::new(reconcile)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!((&*endings(&records)[0], records[0].writes.len()), ("done", 0));
        assert_eq!(cluster.get::<Secret>("victim").await.unwrap().uid(), successor.uid());
    });
}

#[test]
fn defaults_of_the_server_are_no_drift() {
    on_cluster(async |cluster| {
        async fn deploy(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            // Says little: strategy, probes' periods, pull policy and much more are defaults.
            let wish: Deployment = object(json!({
                "metadata": { "name": config.name_any() },
                "spec": {
                    "replicas": 0,
                    "selector": { "matchLabels": { "app": "x" } },
                    "template": {
                        "metadata": { "labels": { "app": "x" } },
                        "spec": { "containers": [{ "name": "c", "image": "c" }] },
                    },
                },
            }));
            context.apply(wish).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(deploy).owns::<Deployment>()).await;
        let journal = running.journal();
        cluster.until_one::<Deployment>("a", "the child", |_| true).await;
        for value in ["2", "3"] {
            let before = journal.records().len();
            cluster.patch::<ConfigMap>("a", json!({ "data": { "value": value } })).await;
            cluster.runs(&journal, before + 1).await;
        }
        cluster.nothing_more().await;
        let writes: usize = journal.records().iter().map(|record| record.writes.len()).sum();
        assert_eq!(writes, 1, "{journal}");
    });
}

#[test]
fn an_apply_is_one_write_and_leaves_the_status_alone() {
    on_cluster(async |cluster| {
        async fn deploy(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let template = homeostat_testing::pod_template("x", "c");
            let selector = json!({ "matchLabels": { "app": "x" } });
            let wish: Deployment = object(json!({
                "metadata": { "name": config.name_any() },
                "spec": { "replicas": 0, "selector": selector, "template": template },
                "status": { "observedGeneration": 7, "replicas": 7 },
            }));
            context.apply(wish).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        drop(cluster.writes.take());
        let running = cluster.start(Controller::new(deploy).owns::<Deployment>()).await;
        let made = cluster.until_one::<Deployment>("a", "the child", |_| true).await;
        let generation = made.status.and_then(|status| status.observed_generation);
        assert_ne!(generation, Some(7));
        cluster.nothing_more().await;
        let mut writes = cluster.writes.take();
        writes.retain(|write| write.contains("/deployments"));
        assert_eq!(writes.len(), 1, "{writes:?}");
        assert!(writes[0].starts_with("PATCH ") && writes[0].ends_with("/deployments/a"));
        running.stop().await.unwrap();
    });
}

#[test]
fn several_finalizers_are_cleaned_up_in_the_order_they_are_asked_for() {
    on_cluster(async |cluster| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let notes = order.clone();
        let reconcile = move |_: Arc<ConfigMap>, context: Context<ConfigMap>| {
            let notes = notes.clone();
            async move {
                for name in ["test.homeostat.dev/first", "test.homeostat.dev/second"] {
                    let clean = || async {
                        notes.lock().unwrap().push(name);
                        Ok(())
                    };
                    context.finalizer(name, clean).await?;
                }
                Ok(Outcome::Done)
            }
        };
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(reconcile)).await;
        let both = |config: &ConfigMap| config.finalizers().len() == 2;
        cluster.until_one::<ConfigMap>("a", "two finalizers", both).await;
        cluster.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
        cluster.until_gone::<ConfigMap>("a").await;
        let order = order.lock().unwrap().clone();
        assert_eq!(order, ["test.homeostat.dev/first", "test.homeostat.dev/second"]);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_read_never_starts_a_watch() {
    on_cluster(async |cluster| {
        async fn look(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            context.get::<Secret>("x").await?;
            context.list::<Secret>().await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(look)).await;
        cluster.runs(&running.journal(), 1).await;
        let followed: Vec<_> =
            running.caches().informers().iter().map(|one| one.kind().to_string()).collect();
        assert_eq!(followed, ["ConfigMap"]);
    });
}
