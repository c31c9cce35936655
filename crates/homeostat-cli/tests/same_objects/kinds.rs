//! The kinds whose objects are compared.

/// Group, version, kind and plural.
pub(crate) type KindOf = (&'static str, &'static str, &'static str, &'static str);

pub(crate) const AT: KindOf = ("cnat.programming-kubernetes.info", "v1alpha1", "At", "ats");
pub(crate) const WEBAPP: KindOf = ("homeostat.dev", "v1alpha1", "WebApp", "webapps");
pub(crate) const DATABASE: KindOf = ("homeostat.dev", "v1alpha1", "Database", "databases");
pub(crate) const LOGICAL_DATABASE: KindOf =
    ("homeostat.dev", "v1alpha1", "LogicalDatabase", "logicaldatabases");
pub(crate) const DEPLOYMENT: KindOf = ("apps", "v1", "Deployment", "deployments");
pub(crate) const REVISION: KindOf = ("apps", "v1", "ControllerRevision", "controllerrevisions");
pub(crate) const POD: KindOf = ("", "v1", "Pod", "pods");
pub(crate) const SECRET: KindOf = ("", "v1", "Secret", "secrets");
pub(crate) const CLAIM: KindOf = ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
pub(crate) const ENDPOINTS: KindOf = ("", "v1", "Endpoints", "endpoints");
pub(crate) const ENDPOINT_SLICE: KindOf =
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");

/// Whatever the operators and the cluster's controllers make of the four objects.
pub(crate) const EVERY: [KindOf; 16] = [
    AT,
    WEBAPP,
    DATABASE,
    LOGICAL_DATABASE,
    DEPLOYMENT,
    ("apps", "v1", "ReplicaSet", "replicasets"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    REVISION,
    POD,
    ("", "v1", "Service", "services"),
    SECRET,
    CLAIM,
    ENDPOINTS,
    ENDPOINT_SLICE,
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "ServiceAccount", "serviceaccounts"),
];
