//! Requests for certificates that have served their purpose, or never will, are removed.

use std::sync::Arc;

use homeostat::{Context, Controller, Outcome, Result};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use x509_parser::pem::parse_x509_pem;

/// How long a decided request is kept for those who want its certificate.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);
/// How long one waits for somebody to decide, or to sign.
const WAITING: SignedDuration = SignedDuration::from_hours(24);

/// The controller.
pub(crate) fn controller() -> Controller<CertificateSigningRequest> {
    Controller::new(reconcile).named("certificate-cleaner")
}

async fn reconcile(
    asked: Arc<CertificateSigningRequest>,
    ctx: Context<CertificateSigningRequest>,
) -> Result<Outcome> {
    match end(&asked) {
        Some(end) if ctx.now() > end => {
            ctx.delete(&*asked).await?;
            Ok(Outcome::Done)
        }
        // At the very moment it may still stay.
        Some(end) => Ok(Outcome::RequeueAt(later(end, SignedDuration::from_secs(1)))),
        None => Ok(Outcome::Done),
    }
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Until when the request stays; nothing when that cannot be said.
fn end(asked: &CertificateSigningRequest) -> Option<Timestamp> {
    let status = asked.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    if conditions.is_empty() {
        let made = asked.metadata.creation_timestamp.as_ref()?;
        return Some(later(made.0, WAITING));
    }
    let certificate = status.certificate.filter(|certificate| !certificate.0.is_empty());
    let ends = conditions.iter().filter_map(|said| {
        let kept = match said.type_.as_str() {
            "Approved" if certificate.is_none() => WAITING,
            "Approved" | "Denied" | "Failed" => DECIDED,
            _ => return None,
        };
        Some(later(said.last_update_time.as_ref()?.0, kept))
    });
    let approved = conditions.iter().any(|said| said.type_ == "Approved");
    let expiry = certificate.as_ref().filter(|_| approved).and_then(|pem| expiry(&pem.0));
    ends.chain(expiry).min()
}

/// Until when the certificate is good.
fn expiry(pem: &[u8]) -> Option<Timestamp> {
    let (_, block) = parse_x509_pem(pem).ok()?;
    let certificate = block.parse_x509().ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn end_of(status: &Value) -> Option<String> {
        let asked = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"request": "", "signerName": "a/b"},
            "status": status,
        });
        end(&serde_json::from_value(asked).unwrap()).map(|end| end.to_string())
    }

    fn said(ty: &str) -> Value {
        json!({"type": ty, "status": "True", "lastUpdateTime": "2026-01-01T02:00:00Z"})
    }

    #[test]
    fn requests_stay_as_long_as_somebody_may_want_them() {
        assert_eq!(end_of(&json!({})).unwrap(), "2026-01-02T00:00:00Z");
        let ends = [
            (json!({"conditions": [said("Denied")]}), "2026-01-01T03:00:00Z"),
            (json!({"conditions": [said("Failed")]}), "2026-01-01T03:00:00Z"),
            (json!({"conditions": [said("Approved")]}), "2026-01-02T02:00:00Z"),
            (
                json!({"conditions": [said("Approved")], "certificate": "eA=="}),
                "2026-01-01T03:00:00Z",
            ),
        ];
        for (status, end) in ends {
            assert_eq!(end_of(&status).unwrap(), end, "{status}");
        }
    }
}
