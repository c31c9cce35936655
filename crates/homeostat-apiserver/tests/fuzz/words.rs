//! Values that mean something somewhere: by the name of the field they go into.

/// Names of objects: few, so that requests meet each other's objects.
pub(crate) const NAMES: &[&str] = &["a", "b", "c", "default", "web", "kubernetes"];

/// Names that are none, or hardly.
pub(crate) const ODD_NAMES: &[&str] = &[
    "",
    ".",
    "..",
    "A",
    "a b",
    "a/b",
    "a%2Fb",
    "-",
    "a:b:c",
    "é",
    "kube-root-ca.crt",
    "xn--",
    "0",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "system:node:a",
    "widgets.fuzz.io",
    "things.fuzz.io",
];

/// Words for any string.
const STRINGS: &[&str] = &[
    "",
    "a",
    "b",
    "web",
    "default",
    "x=y",
    "*",
    "/",
    "/a/../b",
    "true",
    "0",
    "-1",
    "1.5",
    "10%",
    "999999999999999999999",
    "100m",
    "1Gi",
    "1e400",
    "127.0.0.1",
    "::1",
    "10.0.0.0/8",
    "2020-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "-9999-01-01T00:00:00Z",
    "5m",
    "$(A)",
    "{{.}}",
    "a.b.c/d",
    "\u{0}",
    "\u{feff}",
    "é\u{301}",
    "🦀",
    "a\nb",
    "~1~0",
    "Cg==",
];

const CEL: &[&str] = &[
    "true",
    "false",
    "self",
    "self == oldSelf",
    "self.a > 0",
    "object.metadata.name == 'a'",
    "has(object.spec) && object.spec.replicas < 5",
    "object.metadata.labels['a'] == variables.b",
    "1/0 == 1",
    "9223372036854775807 + 1 > 0",
    "[1,2,3].all(x, [1,2,3].exists(y, x == y))",
    "self.map(x, self.map(y, self.map(z, x)))",
    "'a'.matches('(a+)+$')",
    "self.matches('[')",
    "duration('1h') < duration('x')",
    "timestamp('x') == timestamp('x')",
    "quantity('1Gi').isGreaterThan(quantity('x'))",
    "ip('x').family() == 4",
    "url('::').getHost() == ''",
    "semver('x') == semver('1.0.0')",
    "authorizer.group('').resource('pods').check('get').allowed()",
    "params.data.x == 'y'",
    "request.userInfo.username.startsWith('a')",
    "((((((((((((((((((((1))))))))))))))))))))",
    "self.",
    "",
    "\u{0}",
    "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
    "[JSONPatch{op: 'add', path: '/metadata/labels/a', value: 'b'}]",
    "[JSONPatch{op: 'remove', path: '/metadata'}]",
    "dyn(1) == dyn('a')",
    "{'a': 1}.b",
    "b'\\xff'",
    "-(-9223372036854775808)",
    "0x7fffffffffffffff * 2",
    "'x' * 3",
    "string(self)",
    "size(self) > 1000",
    "self.sort().join(',') != ''",
    "'%d %s'.format([1, 2])",
    "'abc'.substring(-1)",
    "'abc'.charAt(99)",
    "[1].slice(3, 1)",
];

const PATTERNS: &[&str] =
    &["^a$", "[", "(a{1000}){1000}", "\\p{L}+", "(?=a)", "(a|b)*c", "\\", "^$", "(?P<n>a)"];

const PATHS: &[&str] = &[
    ".spec.a",
    ".status.replicas",
    ".spec.replicas",
    ".metadata.labels",
    ".metadata.creationTimestamp",
    ".spec.list[0]",
    ".spec.list[*].a",
    ".spec['a']",
    "..a",
    ".",
    "",
    ".spec.list[?(@.a==1)]",
    "{.spec}",
    "spec",
    ".spec.list[-1:]",
    ".spec[",
];

const RESOURCES: &[&str] = &["*", "pods", "configmaps", "widgets", "pods/status", "*/*", "things"];
const VERBS: &[&str] =
    &["*", "get", "create", "escalate", "bind", "impersonate", "CREATE", "UPDATE"];

/// The words that fit a field.
pub(crate) fn of(field: &str) -> &'static [&'static str] {
    match field {
        "expression" | "rule" | "messageExpression" | "valueExpression" => CEL,
        "pattern" => PATTERNS,
        "jsonPath" | "fieldPath" | "specReplicasPath" | "statusReplicasPath" => PATHS,
        "resources" | "resource" => RESOURCES,
        "verbs" | "operations" | "verb" => VERBS,
        "apiGroups" | "apiGroup" | "group" => &["", "*", "apps", "example.com", "x y"],
        "apiVersions" | "apiVersion" | "version" => &["v1", "*", "apps/v1", "a/b/c", "v1beta1"],
        "kind" => &["ConfigMap", "Pod", "Widget", "User", "ServiceAccount", "", "Odd"],
        "name" | "generateName" | "namespace" | "serviceAccountName" | "serviceName" => NAMES,
        "uid" => &["", "6c2e6b0f-0000-4000-8000-000000000001", "x"],
        "resourceVersion" => &["", "0", "1", "5", "-1", "x", "99999999999999999999999"],
        "operator" => &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "Odd"],
        "key" => &["a", "a/b", "a b", "", "kubernetes.io/hostname"],
        "topologyKey" => &["kubernetes.io/hostname", "", "a b"],
        "schedule" => &["* * * * *", "@every 1s", "61 * * * *", "", "*/0 * * * *"],
        "timeZone" => &["UTC", "Europe/Berlin", "Odd/Zone", ""],
        "url" => &["https://127.0.0.1:1/x", "http://127.0.0.1", "::", "https://"],
        "token" => &["a.b.c", "", "x"],
        "op" => &["add", "remove", "replace", "move", "copy", "test", "odd"],
        "path" | "mountPath" | "from" => {
            &["/a", "", "/", "a", "/metadata/name", "/spec/0", "/../x"]
        }
        "type" => &["string", "Opaque", "object", "ClusterIP", "RollingUpdate", "Recreate", "Odd"],
        "policy" => &["Odd", "Delete", "Retain"],
        "clusterIP" | "ip" | "podIP" | "hostIP" => &["None", "127.96.0.9", "", "x", "::1", "1.2.3"],
        "matchPolicy" => &["Equivalent", "Exact"],
        "failurePolicy" => &["Fail", "Ignore"],
        "sideEffects" => &["None", "NoneOnDryRun", "Some"],
        _ => STRINGS,
    }
}
