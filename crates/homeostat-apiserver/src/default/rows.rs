//! The defaults of built-in types, as data: type (below `io.k8s.api.`), field, JSON value.

/// The fields of one type and what they are when nobody says.
pub(super) type TypeRow = (&'static str, &'static [(&'static str, &'static str)]);

/// Every type that has fixed defaults. What depends on other fields is in `derived`.
pub(super) const ROWS: &[TypeRow] = &[
    // core
    (
        "core.v1.PodSpec",
        &[
            ("restartPolicy", r#""Always""#),
            ("terminationGracePeriodSeconds", "30"),
            ("dnsPolicy", r#""ClusterFirst""#),
            ("securityContext", "{}"),
            ("schedulerName", r#""default-scheduler""#),
        ],
    ),
    (
        "core.v1.Container",
        &[
            ("terminationMessagePath", r#""/dev/termination-log""#),
            ("terminationMessagePolicy", r#""File""#),
        ],
    ),
    (
        "core.v1.EphemeralContainer",
        &[
            ("terminationMessagePath", r#""/dev/termination-log""#),
            ("terminationMessagePolicy", r#""File""#),
        ],
    ),
    (
        "core.v1.NodeSystemInfo",
        &[
            ("machineID", r#""""#),
            ("systemUUID", r#""""#),
            ("bootID", r#""""#),
            ("kernelVersion", r#""""#),
            ("osImage", r#""""#),
            ("containerRuntimeVersion", r#""""#),
            ("kubeletVersion", r#""""#),
            ("kubeProxyVersion", r#""""#),
            ("operatingSystem", r#""""#),
            ("architecture", r#""""#),
        ],
    ),
    ("core.v1.ContainerPort", &[("protocol", r#""TCP""#)]),
    (
        "core.v1.Probe",
        &[
            ("timeoutSeconds", "1"),
            ("periodSeconds", "10"),
            ("successThreshold", "1"),
            ("failureThreshold", "3"),
        ],
    ),
    ("core.v1.HTTPGetAction", &[("path", r#""/""#), ("scheme", r#""HTTP""#)]),
    ("core.v1.GRPCAction", &[("service", r#""""#)]),
    ("core.v1.FileKeySelector", &[("optional", "false")]),
    ("core.v1.ObjectFieldSelector", &[("apiVersion", r#""v1""#)]),
    ("core.v1.SecretVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.ConfigMapVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.DownwardAPIVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.ProjectedVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.ServiceAccountTokenProjection", &[("expirationSeconds", "3600")]),
    ("core.v1.HostPathVolumeSource", &[("type", r#""""#)]),
    ("core.v1.ISCSIVolumeSource", &[("iscsiInterface", r#""default""#)]),
    ("core.v1.ISCSIPersistentVolumeSource", &[("iscsiInterface", r#""default""#)]),
    (
        "core.v1.AzureDiskVolumeSource",
        &[
            ("cachingMode", r#""ReadWrite""#),
            ("fsType", r#""ext4""#),
            ("kind", r#""Shared""#),
            ("readOnly", "false"),
        ],
    ),
    (
        "core.v1.ScaleIOVolumeSource",
        &[("fsType", r#""xfs""#), ("storageMode", r#""ThinProvisioned""#)],
    ),
    (
        "core.v1.ScaleIOPersistentVolumeSource",
        &[("fsType", r#""xfs""#), ("storageMode", r#""ThinProvisioned""#)],
    ),
    (
        "core.v1.RBDPersistentVolumeSource",
        &[("pool", r#""rbd""#), ("user", r#""admin""#), ("keyring", r#""/etc/ceph/keyring""#)],
    ),
    (
        "core.v1.RBDVolumeSource",
        &[("pool", r#""rbd""#), ("user", r#""admin""#), ("keyring", r#""/etc/ceph/keyring""#)],
    ),
    ("core.v1.ServiceSpec", &[("sessionAffinity", r#""None""#), ("type", r#""ClusterIP""#)]),
    ("core.v1.ServicePort", &[("protocol", r#""TCP""#)]),
    ("core.v1.EndpointPort", &[("protocol", r#""TCP""#)]),
    ("core.v1.Secret", &[("type", r#""Opaque""#)]),
    ("core.v1.PersistentVolumeStatus", &[("phase", r#""Pending""#)]),
    ("core.v1.PersistentVolumeClaimSpec", &[("volumeMode", r#""Filesystem""#)]),
    ("core.v1.PersistentVolumeClaimStatus", &[("phase", r#""Pending""#)]),
    ("core.v1.NamespaceStatus", &[("phase", r#""Active""#)]),
    ("core.v1.ReplicationControllerSpec", &[("replicas", "1")]),
    // times that are always written
    ("core.v1.PodCondition", &[("lastProbeTime", "null"), ("lastTransitionTime", "null")]),
    ("core.v1.NodeCondition", &[("lastHeartbeatTime", "null"), ("lastTransitionTime", "null")]),
    (
        "core.v1.PersistentVolumeClaimCondition",
        &[("lastProbeTime", "null"), ("lastTransitionTime", "null")],
    ),
    ("core.v1.ContainerStateRunning", &[("startedAt", "null")]),
    ("core.v1.ContainerStateTerminated", &[("startedAt", "null"), ("finishedAt", "null")]),
    ("apps.v1.DeploymentCondition", &[("lastUpdateTime", "null"), ("lastTransitionTime", "null")]),
    ("apps.v1.ReplicaSetCondition", &[("lastTransitionTime", "null")]),
    ("apps.v1.StatefulSetCondition", &[("lastTransitionTime", "null")]),
    ("apps.v1.DaemonSetCondition", &[("lastTransitionTime", "null")]),
    ("batch.v1.JobCondition", &[("lastProbeTime", "null"), ("lastTransitionTime", "null")]),
    (
        "events.v1.Event",
        &[("deprecatedFirstTimestamp", "null"), ("deprecatedLastTimestamp", "null")],
    ),
    (
        "core.v1.Event",
        &[
            ("firstTimestamp", "null"),
            ("lastTimestamp", "null"),
            ("eventTime", "null"),
            ("reportingComponent", r#""""#),
            ("reportingInstance", r#""""#),
        ],
    ),
    // apps
    (
        "apps.v1.DeploymentSpec",
        &[
            ("replicas", "1"),
            ("strategy", "{}"),
            ("revisionHistoryLimit", "10"),
            ("progressDeadlineSeconds", "600"),
        ],
    ),
    ("apps.v1.DeploymentStrategy", &[("type", r#""RollingUpdate""#)]),
    (
        "apps.v1.RollingUpdateDeployment",
        &[("maxUnavailable", r#""25%""#), ("maxSurge", r#""25%""#)],
    ),
    ("apps.v1.ReplicaSetSpec", &[("replicas", "1")]),
    (
        "apps.v1.StatefulSetSpec",
        &[
            ("replicas", "1"),
            ("podManagementPolicy", r#""OrderedReady""#),
            ("updateStrategy", "{}"),
            ("revisionHistoryLimit", "10"),
            ("persistentVolumeClaimRetentionPolicy", "{}"),
        ],
    ),
    (
        "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
        &[("whenDeleted", r#""Retain""#), ("whenScaled", r#""Retain""#)],
    ),
    ("apps.v1.StatefulSetStatus", &[("availableReplicas", "0")]),
    ("apps.v1.RollingUpdateStatefulSetStrategy", &[("partition", "0")]),
    ("apps.v1.DaemonSetSpec", &[("updateStrategy", "{}"), ("revisionHistoryLimit", "10")]),
    ("apps.v1.DaemonSetUpdateStrategy", &[("type", r#""RollingUpdate""#)]),
    ("apps.v1.RollingUpdateDaemonSet", &[("maxUnavailable", "1"), ("maxSurge", "0")]),
    // batch
    (
        "batch.v1.CronJobSpec",
        &[
            ("concurrencyPolicy", r#""Allow""#),
            ("suspend", "false"),
            ("successfulJobsHistoryLimit", "3"),
            ("failedJobsHistoryLimit", "1"),
        ],
    ),
    ("batch.v1.PodFailurePolicyOnPodConditionsPattern", &[("status", r#""True""#)]),
    // networking, discovery
    ("networking.v1.NetworkPolicyPort", &[("protocol", r#""TCP""#)]),
    ("networking.v1.IngressClassParametersReference", &[("scope", r#""Cluster""#)]),
    ("discovery.v1.EndpointPort", &[("name", r#""""#), ("protocol", r#""TCP""#)]),
    // rbac, autoscaling, storage, scheduling
    ("rbac.v1.RoleRef", &[("apiGroup", r#""rbac.authorization.k8s.io""#)]),
    ("autoscaling.v1.HorizontalPodAutoscalerSpec", &[("minReplicas", "1")]),
    ("autoscaling.v2.HorizontalPodAutoscalerSpec", &[("minReplicas", "1")]),
    ("autoscaling.v2.HorizontalPodAutoscalerStatus", &[("currentMetrics", "null")]),
    ("autoscaling.v2.HorizontalPodAutoscalerCondition", &[("lastTransitionTime", "null")]),
    (
        "policy.v1.PodDisruptionBudgetStatus",
        &[
            ("disruptionsAllowed", "0"),
            ("currentHealthy", "0"),
            ("desiredHealthy", "0"),
            ("expectedPods", "0"),
        ],
    ),
    (
        "storage.v1.StorageClass",
        &[("reclaimPolicy", r#""Delete""#), ("volumeBindingMode", r#""Immediate""#)],
    ),
    (
        "storage.v1.CSIDriverSpec",
        &[
            ("attachRequired", "true"),
            ("podInfoOnMount", "false"),
            ("storageCapacity", "false"),
            ("fsGroupPolicy", r#""ReadWriteOnceWithFSType""#),
            ("requiresRepublish", "false"),
            ("seLinuxMount", "false"),
            ("volumeLifecycleModes", r#"["Persistent"]"#),
        ],
    ),
    ("scheduling.v1.PriorityClass", &[("preemptionPolicy", r#""PreemptLowerPriority""#)]),
    // admission registration, flow control
    (
        "admissionregistration.v1.ValidatingWebhook",
        &[
            ("failurePolicy", r#""Fail""#),
            ("matchPolicy", r#""Equivalent""#),
            ("namespaceSelector", "{}"),
            ("objectSelector", "{}"),
            ("timeoutSeconds", "10"),
        ],
    ),
    (
        "admissionregistration.v1.MutatingWebhook",
        &[
            ("failurePolicy", r#""Fail""#),
            ("matchPolicy", r#""Equivalent""#),
            ("namespaceSelector", "{}"),
            ("objectSelector", "{}"),
            ("timeoutSeconds", "10"),
            ("reinvocationPolicy", r#""Never""#),
        ],
    ),
    ("admissionregistration.v1.RuleWithOperations", &[("scope", r#""*""#)]),
    ("admissionregistration.v1.NamedRuleWithOperations", &[("scope", r#""*""#)]),
    ("admissionregistration.v1.ServiceReference", &[("port", "443")]),
    ("admissionregistration.v1.ValidatingAdmissionPolicySpec", &[("failurePolicy", r#""Fail""#)]),
    ("admissionregistration.v1.MutatingAdmissionPolicySpec", &[("failurePolicy", r#""Fail""#)]),
    (
        "admissionregistration.v1.MatchResources",
        &[
            ("matchPolicy", r#""Equivalent""#),
            ("namespaceSelector", "{}"),
            ("objectSelector", "{}"),
        ],
    ),
    ("flowcontrol.v1.FlowSchemaSpec", &[("matchingPrecedence", "1000")]),
    (
        "flowcontrol.v1.ExemptPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", "0"), ("lendablePercent", "0")],
    ),
    (
        "flowcontrol.v1.LimitedPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", "30"), ("lendablePercent", "0")],
    ),
    (
        "flowcontrol.v1.QueuingConfiguration",
        &[("handSize", "8"), ("queues", "64"), ("queueLengthLimit", "50")],
    ),
    (
        "certificates.v1.CertificateSigningRequestCondition",
        &[("lastUpdateTime", "null"), ("lastTransitionTime", "null")],
    ),
    // resource
    ("resource.v1.ExactDeviceRequest", &[("allocationMode", r#""ExactCount""#)]),
    ("resource.v1.DeviceSubRequest", &[("allocationMode", r#""ExactCount""#)]),
    ("resource.v1.DeviceToleration", &[("operator", r#""Equal""#)]),
    ("resource.v1.DeviceClaim", &[("requests", "null")]),
    // authentication
    ("authentication.v1.TokenRequestSpec", &[("expirationSeconds", "3600")]),
];
