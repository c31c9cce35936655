//! A request for a certificate, and what each signer makes of it.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::OID_X509_EXT_SUBJECT_ALT_NAME;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, ParsedCriAttribute};

/// Why a request cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the request for a certificate cannot be read: {0}")]
pub(super) struct Unreadable(String);

/// What a request says.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// DER.
    pub(super) subject: Vec<u8>,
    /// DER.
    pub(super) public_key: Vec<u8>,
    /// Other names, as the extension has them; DER.
    pub(super) names: Option<Vec<u8>>,
    common_name: String,
    organizations: Vec<String>,
    /// How many names are hosts and addresses, and how many are anything else.
    hosts: usize,
    others: usize,
}

impl Request {
    /// Reads one from PEM.
    pub(super) fn read(pem: &[u8]) -> Result<Self, Unreadable> {
        let unreadable = |error: &dyn std::fmt::Display| Unreadable(error.to_string());
        let (_, block) = parse_x509_pem(pem).map_err(|error| unreadable(&error))?;
        let (_, request) = X509CertificationRequest::from_der(&block.contents)
            .map_err(|error| unreadable(&error))?;
        request.verify_signature().map_err(|error| unreadable(&error))?;
        let info = &request.certification_request_info;
        let texts = |values: Vec<Option<&str>>| -> Vec<String> {
            values.into_iter().flatten().map(str::to_owned).collect()
        };
        let subject = &info.subject;
        let common: Vec<_> = subject.iter_common_name().map(|name| name.as_str().ok()).collect();
        let groups: Vec<_> = subject.iter_organization().map(|name| name.as_str().ok()).collect();
        let mut read = Self {
            subject: subject.as_raw().to_vec(),
            public_key: info.subject_pki.raw.to_vec(),
            common_name: texts(common).pop().unwrap_or_default(),
            organizations: texts(groups),
            ..Self::default()
        };
        let asked =
            info.attributes().iter().filter_map(|attribute| match attribute.parsed_attribute() {
                ParsedCriAttribute::ExtensionRequest(asked) => Some(&asked.extensions),
                _ => None,
            });
        for extension in asked.flatten() {
            if extension.oid != OID_X509_EXT_SUBJECT_ALT_NAME {
                continue;
            }
            read.names = Some(extension.value.to_vec());
            if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() {
                let is_host = |name: &GeneralName<'_>| {
                    matches!(name, GeneralName::DNSName(_) | GeneralName::IPAddress(_))
                };
                read.hosts = names.general_names.iter().filter(|name| is_host(name)).count();
                read.others = names.general_names.len() - read.hosts;
            }
        }
        Ok(read)
    }

    /// Whom the certificate would be for.
    pub(super) fn common_name(&self) -> &str {
        &self.common_name
    }

    /// The names of a node are `system:node:…`, and nothing else makes one.
    fn check_node(&self) -> Result<(), String> {
        if self.organizations != ["system:nodes"] {
            return Err("subject organization is not system:nodes".to_owned());
        }
        if !self.common_name.starts_with("system:node:") {
            return Err("subject common name does not begin with system:node:".to_owned());
        }
        Ok(())
    }
}

/// Clients of the API.
pub(super) fn client(_: &Request, usages: &[&str]) -> Result<(), String> {
    let known = ["client auth", "digital signature", "key encipherment"];
    if let Some(usage) = usages.iter().find(|usage| !known.contains(usage)) {
        return Err(format!("invalid usage for client certificate: {usage}"));
    }
    if !usages.contains(&"client auth") {
        return Err("missing required usage for client certificate: client auth".to_owned());
    }
    Ok(())
}

/// Nodes as clients of the API.
pub(super) fn kubelet_client(request: &Request, usages: &[&str]) -> Result<(), String> {
    request.check_node()?;
    if request.hosts + request.others > 0 {
        return Err("subjectAltNames are not allowed".to_owned());
    }
    exactly("client auth", usages)
}

/// Nodes as servers.
pub(super) fn kubelet_serving(request: &Request, usages: &[&str]) -> Result<(), String> {
    request.check_node()?;
    if request.hosts == 0 {
        return Err("at least one DNS or IP subjectAltName is required".to_owned());
    }
    if request.others > 0 {
        return Err("only DNS and IP subjectAltNames are allowed".to_owned());
    }
    exactly("server auth", usages)
}

/// A node's certificate is for this purpose and no other.
fn exactly(purpose: &str, usages: &[&str]) -> Result<(), String> {
    let mut others: Vec<&str> =
        usages.iter().copied().filter(|usage| *usage != "key encipherment").collect();
    others.sort_unstable();
    let mut wanted = [purpose, "digital signature"];
    wanted.sort_unstable();
    if others == wanted {
        return Ok(());
    }
    Err(format!("usages did not match [digital signature {purpose}]"))
}
