//! What is asked: a verb, a path that leads somewhere or nearly, options, headers and a body.

use std::sync::Arc;

use homeostat_apiserver::kinds::Kind;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::request::{Delivery, Request};
use crate::values::Values;
use crate::{bodies, definitions, options, patches, words};

/// Kinds that rule over others, and so are asked for more often than their share.
const FAVOURITES: &[&str] = &[
    "customresourcedefinitions",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "pods",
    "services",
    "deployments",
    "resourcequotas",
    "limitranges",
    "namespaces",
];

/// Objects that the server has shown, to be changed and sent back.
#[derive(Debug, Default)]
pub(crate) struct Seen(Vec<(String, Value)>);

impl Seen {
    const MOST: usize = 40;

    /// Remembers an object under its path.
    pub(crate) fn add(&mut self, path: &str, object: Value) {
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push((path.to_owned(), object));
    }

    fn any(&self, dice: &Dice) -> Option<&(String, Value)> {
        (!self.0.is_empty()).then(|| dice.pick(&self.0))
    }

    /// The newest object under that path.
    fn at(&self, path: &str) -> Option<&Value> {
        self.0.iter().rev().find(|(seen, _)| seen == path).map(|(_, object)| object)
    }
}

/// Makes requests about the kinds that are served.
pub(crate) struct Asker<'a> {
    pub(crate) dice: &'a Dice,
    pub(crate) kinds: &'a [Arc<Kind>],
    pub(crate) seen: &'a Seen,
}

impl Asker<'_> {
    pub(crate) fn request(&self) -> Request {
        let dice = self.dice;
        if dice.chance(4) {
            return self.elsewhere();
        }
        let (kind, collection, name) = self.target();
        let one = format!("{collection}/{name}");
        let mut request = match dice.below(100) {
            0..30 => self.create(&kind, &collection, &name),
            30..36 => self.read(&one),
            36..44 => self.list(&collection),
            44..58 => self.update(&kind, &one, &name),
            58..80 => self.patch(&kind, &one, &name),
            80..90 => self.below(&kind, &one, &name),
            90..96 => self.delete(&one),
            96..98 => self.delete(&collection),
            _ => self.odd_method(&kind, &one, &name),
        };
        self.mutate(&mut request);
        request
    }

    /// What is asked about: more often than not something that is there.
    fn target(&self) -> (Arc<Kind>, String, String) {
        if self.dice.chance(60)
            && let Some((path, object)) = self.seen.any(self.dice)
            && let Some((collection, name)) = path.rsplit_once('/')
        {
            let (version, kind) = (&object["apiVersion"], &object["kind"]);
            let found =
                self.kinds.iter().find(|one| *version == one.api_version() && *kind == one.kind);
            if let Some(found) = found {
                return (found.clone(), collection.to_owned(), name.to_owned());
            }
        }
        let kind = self.kind();
        let collection = self.collection(&kind);
        (kind, collection, self.name())
    }

    fn kind(&self) -> Arc<Kind> {
        let custom: Vec<_> = self.kinds.iter().filter(|kind| kind.custom.is_some()).collect();
        if !custom.is_empty() && self.dice.chance(25) {
            return (*self.dice.pick(&custom)).clone();
        }
        if self.dice.chance(35) {
            let plural = *self.dice.pick(FAVOURITES);
            let found = self.kinds.iter().find(|kind| kind.plural == plural);
            if let Some(kind) = found {
                return kind.clone();
            }
        }
        self.dice.pick(self.kinds).clone()
    }

    fn name(&self) -> String {
        let names = if self.dice.chance(95) { words::NAMES } else { words::ODD_NAMES };
        (*self.dice.pick(names)).to_owned()
    }

    fn collection(&self, kind: &Kind) -> String {
        let root = if kind.group.is_empty() { "/api" } else { "/apis" };
        let namespace = match self.dice.below(100) {
            _ if !kind.namespaced => String::new(),
            0..90 => "/namespaces/default".to_owned(),
            90..95 => format!("/namespaces/{}", self.dice.pick(words::NAMES)),
            _ => String::new(),
        };
        format!("{root}/{}{namespace}/{}", kind.api_version(), kind.plural)
    }

    /// An object of that kind.
    fn object(&self, kind: &Kind, name: &str) -> Value {
        if kind.plural == "customresourcedefinitions" && self.dice.chance(90) {
            return definitions::definition(self.dice);
        }
        let values = Values::new(self.dice);
        let mut object = values.of(kind.schema.root(), "", 0);
        if let Some(fields) = object.as_object_mut() {
            let strange = self.dice.chance(25);
            let metadata = fields.get("metadata").filter(|_| strange).cloned();
            let mut metadata = metadata.unwrap_or_else(|| json!({"labels": {"app": "web"}}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("name".to_owned(), name.into());
                if self.dice.chance(95) {
                    metadata.shift_remove("namespace");
                    metadata.shift_remove("resourceVersion");
                }
            }
            fields.insert("metadata".to_owned(), metadata);
            if self.dice.chance(97) {
                fields.insert("apiVersion".to_owned(), kind.api_version().into());
                fields.insert("kind".to_owned(), kind.kind.clone().into());
            }
        }
        if self.dice.chance(1) {
            values.swell(&mut object);
        }
        object
    }

    fn write(&self, method: &str, path: &str, kind: &Kind, body: &Value) -> Request {
        // Large bodies take long to make and to read: one in a few rounds.
        let inflated = (self.dice.below(250) == 0).then(|| {
            let mut body = body.clone();
            bodies::inflate(self.dice, &mut body);
            body
        });
        let (media, bytes) = bodies::encode(self.dice, kind, inflated.as_ref().unwrap_or(body));
        Request {
            method: method.to_owned(),
            target: path.to_owned() + &options::write(self.dice),
            headers: vec![("content-type".to_owned(), media.to_owned())],
            body: bytes,
            delivery: Delivery::Whole,
        }
    }

    fn create(&self, kind: &Kind, collection: &str, name: &str) -> Request {
        self.write("POST", collection, kind, &self.object(kind, name))
    }

    fn read(&self, one: &str) -> Request {
        Request::get(one.to_owned() + &options::list(self.dice), options::accept(self.dice))
    }

    fn list(&self, collection: &str) -> Request {
        Request::get(collection.to_owned() + &options::list(self.dice), options::accept(self.dice))
    }

    /// What is there, changed a little; or something new.
    fn changed(&self, kind: &Kind, one: &str, name: &str) -> Value {
        let seen = self.seen.at(one).filter(|_| self.dice.chance(85));
        let Some(seen) = seen else { return self.object(kind, name) };
        let mut object = seen.clone();
        let values = Values::new(self.dice);
        for _ in 0..1 + self.dice.below(3) {
            values.change(Some(kind.schema.root()), "", &mut object);
        }
        object
    }

    fn update(&self, kind: &Kind, one: &str, name: &str) -> Request {
        self.write("PUT", one, kind, &self.changed(kind, one, name))
    }

    fn patch(&self, kind: &Kind, path: &str, name: &str) -> Request {
        let types = if self.dice.chance(97) { &patches::TYPES[..4] } else { &patches::TYPES };
        let media = *self.dice.pick(types);
        let one = path.trim_end_matches("/status").trim_end_matches("/scale");
        let object = self.seen.at(one).cloned().unwrap_or_else(|| self.object(kind, name));
        let values = Values::new(self.dice);
        let patch = patches::patch(&values, kind, media, &object);
        let is_yaml = media.ends_with("yaml") && self.dice.chance(50);
        let yaml = is_yaml.then(|| serde_saphyr::to_string(&patch).unwrap_or_default());
        let text = yaml.unwrap_or_else(|| patch.to_string());
        Request {
            method: "PATCH".to_owned(),
            target: path.to_owned() + &options::patch(self.dice, media),
            headers: vec![("content-type".to_owned(), media.to_owned())],
            body: text.into_bytes(),
            delivery: Delivery::Whole,
        }
    }

    /// A request below an object.
    fn below(&self, kind: &Kind, one: &str, name: &str) -> Request {
        let known: Vec<&str> = kind.subresources.iter().map(|below| below.name.as_str()).collect();
        let below = match known.as_slice() {
            known if !known.is_empty() && self.dice.chance(95) => *self.dice.pick(known),
            _ => *self.dice.pick(&["status", "scale", "log", "odd", "binding", "token"]),
        };
        let path = format!("{one}/{below}");
        match (below, self.dice.below(3)) {
            ("status" | "scale" | "approval" | "resize" | "ephemeralcontainers", 0 | 1) => {
                self.patch(kind, &path, name)
            }
            ("status" | "finalize" | "approval" | "resize" | "ephemeralcontainers", _) => {
                self.write("PUT", &path, kind, &self.changed(kind, one, name))
            }
            ("scale", _) => {
                let replicas = Values::new(self.dice).anything(1);
                let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": replicas}});
                self.write("PUT", &path, kind, &scale)
            }
            ("log" | "exec" | "attach" | "portforward" | "proxy", _) => self.read(&path),
            (_, _) => {
                let of = self.kinds.iter().find(|other| other.plural.starts_with(below));
                let body = of.map(|of| self.object(of, name));
                let body = body.unwrap_or_else(|| Values::new(self.dice).anything(3));
                self.write("POST", &path, kind, &body)
            }
        }
    }

    fn delete(&self, path: &str) -> Request {
        let dice = self.dice;
        let mut request = Request {
            method: "DELETE".to_owned(),
            target: path.to_owned() + &options::list(dice),
            ..Request::default()
        };
        if dice.chance(50) {
            let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
            body["propagationPolicy"] =
                (*dice.pick(&["Background", "Foreground", "Orphan", "Odd"])).into();
            body["gracePeriodSeconds"] = dice
                .pick(&[
                    json!(0),
                    json!(1),
                    json!(-1),
                    json!(i64::MAX),
                    json!(u64::MAX),
                    json!("x"),
                    json!(null),
                ])
                .clone();
            let odd = Values::new(dice).anything(2);
            body["preconditions"] = if dice.chance(80) { Value::Null } else { odd };
            request.body = body.to_string().into_bytes();
            request.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        request
    }

    fn odd_method(&self, kind: &Kind, one: &str, name: &str) -> Request {
        let method =
            *self.dice.pick(&["HEAD", "OPTIONS", "TRACE", "CONNECT", "POST", "FOO", "PUT"]);
        self.write(method, one, kind, &self.object(kind, name))
    }

    /// What is no resource.
    fn elsewhere(&self) -> Request {
        let paths = [
            "/",
            "/api",
            "/apis",
            "/apis/apps",
            "/apis/apps/v1",
            "/apis/nothing",
            "/api/v1",
            "/version",
            "/healthz",
            "/livez/ping",
            "/readyz?verbose",
            "/readyz?exclude=ping",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/api/v1",
            "/openapi/v3/../x",
            "/openid/v1/jwks",
            "/.well-known/openid-configuration",
            "/apis/fuzz.io/v1",
            "/openapi/v3/apis/fuzz.io/v1",
            "//",
            "/%00",
            "/api/v1/namespaces//pods",
            "/api/v1/watch",
            "/api/v1/watch/pods?timeoutSeconds=1",
            "/%ff%fe",
            "/api/v1/pods/",
            "/logs",
            "/debug/pprof",
            "/api/v1/namespaces/default/pods/a/b/c/d",
        ];
        let method = if self.dice.chance(90) { "GET" } else { "POST" };
        let headers = vec![("accept".to_owned(), options::accept(self.dice).to_owned())];
        let target = (*self.dice.pick(&paths)).to_owned();
        Request { method: method.to_owned(), target, headers, ..Request::default() }
    }

    /// Spoils a request here and there.
    fn mutate(&self, request: &mut Request) {
        let dice = self.dice;
        if dice.chance(5) {
            let is_yaml = bodies::spoil(dice, &mut request.body);
            let media = request.headers.iter_mut().find(|(name, _)| name == "content-type");
            if let Some((_, media)) = media.filter(|(_, media)| is_yaml && !media.contains("yaml"))
            {
                "application/yaml".clone_into(media);
            }
        }
        if dice.chance(3) {
            let deliveries = [Delivery::Pieces, Delivery::Stalls, Delivery::Breaks];
            request.delivery = *dice.pick(&deliveries);
        }
        options::headers(dice, request);
        if dice.chance(3) {
            options::bend(dice, &mut request.target);
        }
        // The proxy would connect to whatever address an object names.
        if request.target.contains("proxy") {
            request.target = "/api/v1/nodes/a/proxy/x".to_owned();
        }
    }
}
