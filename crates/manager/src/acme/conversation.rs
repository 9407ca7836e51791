//! Protocol of an order, from the authority's directory to the certificate, on a thread of its own
//! that has the rights of the jail's user: [`order`] and [`window`].
//!
//! The manager is root, and a lot of code reads the authority's data; none of it runs with root's
//! rights or on the manager's loop. The thread touches no files: what must be stored is sent as
//! [`Said`] to the receiver, which stores it. The authority's steps are those of RFC 8555 §7.4;
//! renewal information is RFC 9773. Next file: `keeper.rs`.

use super::client::{Bounded, Heard};
use super::failure::Failure;
use super::folder::{Answer, is_token};
use super::plan::Kind;
use crate::arguments::acme::Way;
use crate::arguments::jail::Reader;
use crate::rights;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, Identifier,
    NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls_pki_types::CertificateDer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use surface::limits::ACME_ORDER_SECONDS;
use tokio::sync::{mpsc, oneshot};

/// Delays between polls of an authority's status: this one first, then increasing ones.
const POLL: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).backoff(1.5).timeout(Duration::from_secs(120));

/// The authority to contact, and the account to use.
#[derive(Clone, Debug)]
pub struct Partner {
    /// The directory's URL.
    pub directory: String,
    /// Trust anchors for the authority's own certificate, in DER; empty = the system's.
    pub authorities: Vec<Vec<u8>>,
    /// Contact address for the authority.
    pub contact: Option<String>,
    /// The account as it was saved; `None` = a new one is created.
    pub account: Option<serde_json::Value>,
    /// The rights of the thread; `None` = our own.
    pub reader: Option<Reader>,
}

/// Parameters of one order.
#[derive(Clone, Debug)]
pub struct OrderRequest {
    /// The names, at least one.
    pub names: Vec<String>,
    /// Challenge type that proves control of the names.
    pub way: Way,
    /// The certificate that is replaced, in DER.
    pub replaces: Option<Vec<u8>>,
}

/// Messages sent in the course of an order.
#[derive(Debug)]
pub enum Said {
    /// A new account, which must be stored.
    Account(String),
    /// The answers to serve to the authority; the order continues once they are served.
    Answers(Vec<Answer>, oneshot::Sender<()>),
}

/// Orders a certificate. Returns chain and key in PEM.
///
/// # Errors
/// See [`Failure`].
pub async fn order(
    partner: Partner,
    order_request: OrderRequest,
    said: mpsc::UnboundedSender<Said>,
) -> Result<String, Failure> {
    on_restricted_thread(partner.reader.clone(), move || async move {
        let heard = Heard::default();
        let result = converse(&partner, &order_request, &said, &heard).await;
        result.map_err(|failure| Failure { retry_after: heard.retry_after(), ..failure })
    })
    .await
}

/// The renewal window that the authority advises for a certificate (DER): its beginning and end, in
/// seconds since 1970, and the delay before the next request for advice.
///
/// # Errors
/// See [`Failure`]; `None` if this authority gives no advice.
pub async fn window(partner: Partner, certificate: Vec<u8>) -> Result<Option<((f64, f64), Duration)>, Failure> {
    on_restricted_thread(partner.reader.clone(), move || async move {
        let account = account(&partner, &Heard::default(), None).await?;
        let der = CertificateDer::from(certificate);
        let id = CertificateIdentifier::try_from(&der).map_err(|error| Failure::new(Kind::Ours, &error))?;
        match account.renewal_info(&id).await {
            Ok((info, again)) => {
                let seconds = |time: i64| time as f64;
                let window = info.suggested_window;
                let window = (seconds(window.start.unix_timestamp()), seconds(window.end.unix_timestamp()));
                Ok(Some((window, again)))
            }
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(Failure::of(&error)),
        }
    })
    .await
}

/// Runs a conversation on a thread with few rights, for a limited time.
async fn on_restricted_thread<T: Send + 'static, F>(
    reader: Option<Reader>,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let (done, result) = oneshot::channel();
    let ours = |error: &std::io::Error| Failure::new(Kind::Ours, &format!("no thread: {error}"));
    let thread = move || {
        let result = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                let limit = Duration::from_secs(ACME_ORDER_SECONDS);
                let conversation = || runtime.block_on(async { tokio::time::timeout(limit, work()).await });
                // The library panics at some answers that it should refuse. The authority is at
                // fault, so the panic must neither be repeated every minute nor look like a fault
                // of the machine.
                let result = catch_unwind(AssertUnwindSafe(conversation));
                // Does not wait for a name resolution.
                runtime.shutdown_background();
                match result {
                    Ok(result) => result.unwrap_or_else(|_| Err(Failure::late())),
                    Err(_) => Err(Failure::new(Kind::Unreachable, "an answer of the authority cannot be processed")),
                }
            }
            Err(error) => Err(Failure::new(Kind::Ours, &format!("no event loop: {error}"))),
        };
        let _ = done.send(result);
    };
    rights::spawn(reader, "acme", thread).map_err(|error| ours(&error))?;
    // The sender is dropped if the thread could not give up its rights.
    result.await.unwrap_or_else(|_| Err(Failure::new(Kind::Ours, "the thread ended early")))
}

async fn converse(
    partner: &Partner,
    order_request: &OrderRequest,
    said: &mpsc::UnboundedSender<Said>,
    heard: &Heard,
) -> Result<String, Failure> {
    let account = account(partner, heard, Some(said)).await?;
    let mut order = place(&account, order_request).await?;
    if order.state().status == OrderStatus::Pending {
        prove(&mut order, order_request, said).await?;
    }
    let key = KeyPair::generate().map_err(|error| Failure::new(Kind::Ours, &error.to_string()))?;
    let request =
        signing_request(&order_request.names, &key).map_err(|error| Failure::new(Kind::Ours, &error.to_string()))?;
    order.finalize_csr(&request).await.map_err(|error| Failure::of(&error))?;
    let chain = order.poll_certificate(&POLL).await.map_err(|error| Failure::of(&error))?;
    Ok(format!("{}{}", certificates_only(&chain)?, key.serialize_pem()))
}

/// The certificates of a chain as the authority sent it, in PEM. Everything else is dropped, above
/// all a private key: the key is the one that was made here.
fn certificates_only(chain: &str) -> Result<String, Failure> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let mut only = String::new();
    let mut is_inside = false;
    for line in chain.lines().map(str::trim) {
        is_inside |= line == BEGIN;
        // A nested section could be read as a key later.
        if is_inside && line.contains("--") && !matches!(line, BEGIN | END) {
            return Err(Failure::new(Kind::Refused, "the chain that was issued is not a list of certificates"));
        }
        if is_inside {
            only.push_str(line);
            only.push('\n');
        }
        is_inside &= line != END;
    }
    if is_inside || only.is_empty() {
        return Err(Failure::new(Kind::Refused, "the chain that was issued holds no whole certificate"));
    }
    Ok(only)
}

fn signing_request(names: &[String], key: &KeyPair) -> Result<Vec<u8>, rcgen::Error> {
    let mut parameters = CertificateParams::new(names.to_vec())?;
    parameters.distinguished_name = DistinguishedName::new();
    Ok(parameters.serialize_request(key)?.der().to_vec())
}

/// Our account; created if there is none and `said`, the channel to the task that stores it, is
/// given.
async fn account(
    partner: &Partner,
    heard: &Heard,
    said: Option<&mpsc::UnboundedSender<Said>>,
) -> Result<Account, Failure> {
    let client = Bounded::new(&partner.authorities, heard.clone()).map_err(|error| Failure::new(Kind::Ours, &error))?;
    let builder = Account::builder_with_http(Box::new(client));
    if let Some(saved) = &partner.account {
        let credentials: AccountCredentials = serde_json::from_value(saved.clone())
            .map_err(|error| Failure::new(Kind::AccountUnknown, &format!("account.json: {error}")))?;
        return builder.from_credentials(credentials).await.map_err(|error| Failure::of(&error));
    }
    let Some(said) = said else { return Err(Failure::new(Kind::Ours, "there is no account yet")) };
    let contact = partner.contact.as_ref().map(|address| format!("mailto:{address}"));
    let contact: Vec<&str> = contact.as_deref().into_iter().collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let (account, credentials) =
        builder.create(&new, partner.directory.clone(), None).await.map_err(|error| Failure::of(&error))?;
    let text = serde_json::to_string(&credentials).map_err(|error| Failure::new(Kind::Ours, &error.to_string()))?;
    let _ = said.send(Said::Account(text));
    Ok(account)
}

/// Places the order. It names the certificate that it replaces if the authority supports that: the
/// authority may then exempt it from rate limits.
async fn place(account: &Account, order_request: &OrderRequest) -> Result<Order, Failure> {
    let names: Vec<Identifier> = order_request.names.iter().cloned().map(Identifier::Dns).collect();
    let old = order_request.replaces.as_ref().map(|der| CertificateDer::from(der.as_slice()));
    let replaces = old.as_ref().and_then(|old| CertificateIdentifier::try_from(old).ok());
    if let Some(replaces) = replaces {
        match account.new_order(&NewOrder::new(&names).replaces(replaces)).await {
            Ok(order) => return Ok(order),
            Err(error) => {
                let failure = Failure::of(&error);
                let is_about_us = matches!(failure.kind, Kind::Limited | Kind::AccountUnknown);
                let is_misunderstood = matches!(error, Error::Unsupported(_) | Error::Other(_) | Error::Api(_));
                if is_about_us || !is_misunderstood {
                    return Err(failure);
                }
            }
        }
    }
    account.new_order(&NewOrder::new(&names)).await.map_err(|error| Failure::of(&error))
}

/// Proves control of the names to the authority.
async fn prove(
    order: &mut Order,
    order_request: &OrderRequest,
    said: &mpsc::UnboundedSender<Said>,
) -> Result<(), Failure> {
    let kind = match order_request.way {
        Way::Http => ChallengeType::Http01,
        Way::TlsAlpn => ChallengeType::TlsAlpn01,
    };
    let mut answers = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(|error| Failure::of(&error))?;
        if authorization.status != AuthorizationStatus::Pending {
            continue;
        }
        let Some(challenge) = authorization.challenge(kind.clone()) else {
            let text = format!("the authority does not offer {}", order_request.way.name());
            return Err(Failure::new(Kind::Unproven, &text));
        };
        if !is_token(&challenge.token) {
            return Err(Failure::new(Kind::Refused, "the authority sent a token that RFC 8555 does not allow"));
        }
        let name = challenge.identifier().to_string();
        if !order_request.names.contains(&name) {
            return Err(Failure::new(
                Kind::Refused,
                &format!("the authority asks about {name}, which was not ordered"),
            ));
        }
        let authorization = challenge.key_authorization();
        answers.push(Answer {
            way: order_request.way,
            name,
            token: challenge.token.clone(),
            authorization: authorization.as_str().to_owned(),
            digest: authorization.digest().as_ref().to_vec(),
        });
    }
    let (placed, is_placed) = oneshot::channel();
    let gone = || Failure::new(Kind::Ours, "the challenges could not be placed");
    said.send(Said::Answers(answers, placed)).map_err(|_| gone())?;
    is_placed.await.map_err(|_| gone())?;
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(|error| Failure::of(&error))?;
        if authorization.status != AuthorizationStatus::Pending {
            continue;
        }
        if let Some(mut challenge) = authorization.challenge(kind.clone()) {
            challenge.set_ready().await.map_err(|error| Failure::of(&error))?;
        }
    }
    match order.poll_ready(&POLL).await {
        Ok(OrderStatus::Ready) => Ok(()),
        Ok(_) => Err(doubts(order, order_request.way)
            .await
            .unwrap_or_else(|| Failure::new(Kind::Unproven, "the order is invalid"))),
        Err(error) => Err(doubts(order, order_request.way).await.unwrap_or_else(|| Failure::of(&error))),
    }
}

/// The first problem that the authority reports for one of the names.
async fn doubts(order: &mut Order, way: Way) -> Option<Failure> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.ok()?;
        let state = authorization.refresh().await.ok()?;
        let problem = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = problem {
            let said = Failure::of_problem(problem);
            let kind = if said.kind == Kind::Limited { Kind::Limited } else { Kind::Unproven };
            return Some(Failure::new(kind, &format!("{} by {}: {}", state.identifier(), way.name(), said.text)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n";

    #[test]
    fn a_key_in_the_chain_of_an_authority_is_left_out() {
        for chain in [
            format!("{KEY}{CERTIFICATE}{CERTIFICATE}"),
            format!("{CERTIFICATE}{KEY}{CERTIFICATE}"),
            format!("# a comment\r\n{CERTIFICATE}\n\n{CERTIFICATE}{KEY}").replace('\n', "\r\n"),
        ] {
            assert_eq!(certificates_only(&chain).unwrap(), format!("{CERTIFICATE}{CERTIFICATE}"), "{chain}");
        }
    }

    #[test]
    fn a_chain_that_hides_a_key_or_is_cut_is_refused() {
        let hidden = format!("-----BEGIN CERTIFICATE-----\n{KEY}-----END CERTIFICATE-----\n");
        for chain in ["", KEY, &hidden, &CERTIFICATE[..40], &format!("{CERTIFICATE}-----BEGIN CERTIFICATE-----\nAA")] {
            assert_eq!(certificates_only(chain).unwrap_err().kind, Kind::Refused, "{chain}");
        }
    }

    #[tokio::test]
    async fn a_panic_within_a_conversation_is_a_failure_of_the_authority() {
        let result =
            on_restricted_thread(None, || async { if true { panic!("within the library") } else { Ok(()) } }).await;
        assert_eq!(result.unwrap_err().kind, Kind::Unreachable);
    }
}
