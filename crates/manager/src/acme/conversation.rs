//! A conversation with an authority, from its directory to the certificate, on a thread of its own that has the rights of the jail's
//! user: [`order`] and [`window`].
//!
//! The manager is root, and what an authority sends is read by a lot of code; nothing of that runs with root's rights or on the
//! manager's loop. The thread touches no files: what is to be kept it [says](Said), and whoever listens keeps it.
//! The authority's steps are those of RFC 8555 §7.4; renewal information is RFC 9773. Next file: `keeper.rs`.

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
use std::time::Duration;
use surface::limits::ACME_ORDER_SECONDS;
use tokio::sync::{mpsc, oneshot};

/// How often an authority is asked whether it is done: first after this, then less and less often.
const POLL: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).backoff(1.5).timeout(Duration::from_secs(120));

/// With whom to speak, and as whom.
#[derive(Clone, Debug)]
pub struct Partner {
    /// The directory's URL.
    pub directory: String,
    /// Who may have issued its certificate, in DER; empty = whom the system trusts.
    pub authorities: Vec<Vec<u8>>,
    /// Whom the authority may write to.
    pub contact: Option<String>,
    /// The account as it was saved; `None` = a new one is made.
    pub account: Option<serde_json::Value>,
    /// The rights of the thread; `None` = our own.
    pub reader: Option<Reader>,
}

/// What is to be ordered.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The names, at least one.
    pub names: Vec<String>,
    /// How it is shown that they are ours.
    pub way: Way,
    /// The certificate that is replaced, in DER.
    pub replaces: Option<Vec<u8>>,
}

/// What is said in the course of an order.
#[derive(Debug)]
pub enum Said {
    /// There is a new account: it must be kept.
    Account(String),
    /// This must be answered; the conversation goes on once it is.
    Answers(Vec<Answer>, oneshot::Sender<()>),
}

/// Orders a certificate. Returns chain and key in PEM.
///
/// # Errors
/// See [`Failure`].
pub async fn order(partner: Partner, wish: Wish, said: mpsc::UnboundedSender<Said>) -> Result<String, Failure> {
    aside(partner.reader.clone(), move || async move {
        let heard = Heard::default();
        let result = converse(&partner, &wish, &said, &heard).await;
        result.map_err(|failure| Failure { retry_after: heard.retry_after(), ..failure })
    })
    .await
}

/// When the authority advises to renew a certificate (DER): the beginning and the end of that time, in seconds since 1970, and after
/// how long to ask again.
///
/// # Errors
/// See [`Failure`]; `None` if this authority gives no advice.
pub async fn window(partner: Partner, certificate: Vec<u8>) -> Result<Option<((f64, f64), Duration)>, Failure> {
    aside(partner.reader.clone(), move || async move {
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
async fn aside<T: Send + 'static, F>(
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
                let result = runtime.block_on(async { tokio::time::timeout(limit, work()).await });
                // A name that is being resolved is not waited for.
                runtime.shutdown_background();
                result.unwrap_or_else(|_| Err(Failure::late()))
            }
            Err(error) => Err(Failure::new(Kind::Ours, &format!("no event loop: {error}"))),
        };
        let _ = done.send(result);
    };
    rights::spawn(reader, "acme", thread).map_err(|error| ours(&error))?;
    // The sender goes without a word if the thread may not give up its rights, or panics.
    result.await.unwrap_or_else(|_| Err(Failure::new(Kind::Ours, "the thread ended early")))
}

async fn converse(
    partner: &Partner,
    wish: &Wish,
    said: &mpsc::UnboundedSender<Said>,
    heard: &Heard,
) -> Result<String, Failure> {
    let account = account(partner, heard, Some(said)).await?;
    let mut order = place(&account, wish).await?;
    if order.state().status == OrderStatus::Pending {
        prove(&mut order, wish, said).await?;
    }
    let key = KeyPair::generate().map_err(|error| Failure::new(Kind::Ours, &error.to_string()))?;
    let request = signing_request(&wish.names, &key).map_err(|error| Failure::new(Kind::Ours, &error.to_string()))?;
    order.finalize_csr(&request).await.map_err(|error| Failure::of(&error))?;
    let chain = order.poll_certificate(&POLL).await.map_err(|error| Failure::of(&error))?;
    Ok(format!("{}\n{}", chain.trim_end(), key.serialize_pem()))
}

fn signing_request(names: &[String], key: &KeyPair) -> Result<Vec<u8>, rcgen::Error> {
    let mut parameters = CertificateParams::new(names.to_vec())?;
    parameters.distinguished_name = DistinguishedName::new();
    Ok(parameters.serialize_request(key)?.der().to_vec())
}

/// Our account, made if there is none and somebody listens who keeps it.
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

/// Places the order. That it replaces another certificate is said if the authority wants to hear it: it may make an exception from
/// its limits then.
async fn place(account: &Account, wish: &Wish) -> Result<Order, Failure> {
    let names: Vec<Identifier> = wish.names.iter().cloned().map(Identifier::Dns).collect();
    let old = wish.replaces.as_ref().map(|der| CertificateDer::from(der.as_slice()));
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

/// Shows the authority that the names are ours.
async fn prove(order: &mut Order, wish: &Wish, said: &mpsc::UnboundedSender<Said>) -> Result<(), Failure> {
    let kind = match wish.way {
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
            let text = format!("the authority does not offer {}", wish.way.name());
            return Err(Failure::new(Kind::Unproven, &text));
        };
        if !is_token(&challenge.token) {
            return Err(Failure::new(Kind::Refused, "the authority sent a token that RFC 8555 does not allow"));
        }
        let name = challenge.identifier().to_string();
        if !wish.names.contains(&name) {
            return Err(Failure::new(
                Kind::Refused,
                &format!("the authority asks about {name}, which was not ordered"),
            ));
        }
        let authorization = challenge.key_authorization();
        answers.push(Answer {
            way: wish.way,
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
        Ok(_) => {
            Err(doubts(order, wish.way).await.unwrap_or_else(|| Failure::new(Kind::Unproven, "the order is invalid")))
        }
        Err(error) => Err(doubts(order, wish.way).await.unwrap_or_else(|| Failure::of(&error))),
    }
}

/// What the authority found wrong with a name, the first of them.
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
