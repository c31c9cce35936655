//! `CertificateSubjectRestriction`: nobody becomes a member of `system:masters` by a certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer as _;

use super::{Operation, Review};
use crate::status::Status;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

pub(super) fn check(review: &Review<'_>) -> Result<(), Status> {
    if review.operation != Operation::Create
        || !review.is_for("certificatesigningrequests.certificates.k8s.io")
        || review.text("/spec/signerName") != SIGNER
    {
        return Ok(());
    }
    let request = STANDARD.decode(review.text("/spec/request")).unwrap_or_default();
    let groups = organizations(&request)
        .map_err(|why| review.forbid(&format!("failed to parse CSR: {why}")))?;
    if groups.iter().any(|group| group == "system:masters") {
        return Err(review
            .forbid(&format!("use of {SIGNER} signer with system:masters group is not allowed")));
    }
    Ok(())
}

/// The organizations that a request names.
fn organizations(pem: &[u8]) -> Result<Vec<String>, String> {
    let wrong = || "PEM block type must be CERTIFICATE REQUEST".to_owned();
    let (_, block) = parse_x509_pem(pem).map_err(|_| wrong())?;
    if block.label != "CERTIFICATE REQUEST" {
        return Err(wrong());
    }
    let (_, request) =
        X509CertificationRequest::from_der(&block.contents).map_err(|error| error.to_string())?;
    let subject = &request.certification_request_info.subject;
    let names = subject.iter_organization().filter_map(|name| name.as_str().ok());
    Ok(names.map(str::to_owned).collect())
}
