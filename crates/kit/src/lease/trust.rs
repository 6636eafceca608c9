//! Whose claim of every namespace is believed. Whoever may write Leases in a namespace can write there what they like,
//! but not make a ServiceAccount of theirs an operator of all namespaces: RBAC has the last word.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};

use super::mark::{Mark, Right};
use super::request::{RequestError, within};
use crate::telemetry::Chain;

/// How long an answer holds: also if the Lease names another account meanwhile, or who writes it without pause would
/// have us ask without pause.
const MEMORY: Duration = Duration::from_secs(60);

/// How many reviews are asked for at once.
const AT_ONCE: usize = 10;

/// The name of a ServiceAccount in each of some namespaces.
type Accounts = BTreeMap<String, String>;

/// What RBAC has answered, by namespace.
#[derive(Debug, Default)]
pub(super) struct Trust {
    answers: BTreeMap<String, Answer>,
}

#[derive(Debug, Clone, Copy)]
struct Answer {
    is_trusted: bool,
    since: Instant,
}

impl Trust {
    /// The namespaces whose Lease may claim every namespace.
    ///
    /// Fails if it cannot be found out now: two operators that do not believe each other would both work. What asking
    /// again would not change is no.
    pub(super) async fn of(
        &mut self,
        client: &Client,
        mark: &Mark,
        home: &str,
        leases: &[Lease],
        deadline: Instant,
    ) -> Result<BTreeSet<String>, RequestError> {
        let claims = claims(mark, home, leases);
        let ask = |(namespace, name): (String, String)| async move {
            let left = deadline.saturating_duration_since(Instant::now());
            (within(left, review(client, mark.right, &namespace, &name)).await, namespace)
        };
        let questions = stream::iter(self.questions(&claims, Instant::now())).map(ask);
        let answers: Vec<_> = questions.buffer_unordered(AT_ONCE).collect().await;
        let now = Instant::now();
        // All of them, so that the next time there is less to ask.
        let outcomes: Vec<_> =
            answers.into_iter().map(|(answer, namespace)| self.take_in(&namespace, answer, now)).collect();
        outcomes.into_iter().collect::<Result<(), _>>()?;
        Ok(self.trusted(&claims))
    }

    /// Whom to ask about.
    fn questions(&mut self, claims: &Accounts, now: Instant) -> Accounts {
        let is_fresh = |answer: &Answer| now < answer.since + MEMORY;
        self.answers.retain(|namespace, answer| is_fresh(answer) || claims.contains_key(namespace));
        let is_known = |namespace: &String| self.answers.get(namespace).is_some_and(is_fresh);
        claims.clone().into_iter().filter(|(namespace, _)| !is_known(namespace)).collect()
    }

    fn take_in(
        &mut self,
        namespace: &str,
        answer: Result<bool, RequestError>,
        now: Instant,
    ) -> Result<(), RequestError> {
        let is_trusted = match answer {
            Ok(is_trusted) => is_trusted,
            Err(error) if error.is_refusal() => {
                let error = Chain(&error);
                tracing::warn!(namespace, %error, "cannot ask for the rights of a ServiceAccount: it is not believed");
                false
            }
            // What it was is a better guess than nothing.
            Err(_) if self.answers.contains_key(namespace) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !is_trusted && self.answers.get(namespace).is_none_or(|known| known.is_trusted) {
            tracing::warn!(
                namespace,
                "a Lease claims all namespaces for a ServiceAccount that is no operator of all: it claims its own only"
            );
        }
        self.answers.insert(namespace.to_owned(), Answer { is_trusted, since: now });
        Ok(())
    }

    fn trusted(&self, claims: &Accounts) -> BTreeSet<String> {
        let is_trusted = |namespace: &&String| self.answers.get(*namespace).is_some_and(|known| known.is_trusted);
        claims.keys().filter(is_trusted).cloned().collect()
    }
}

/// Who claims every namespace, apart from ourselves.
fn claims(mark: &Mark, home: &str, leases: &[Lease]) -> Accounts {
    let claim = |lease: &Lease| {
        // The namespace is the Lease's own, whatever it says: that is where its writer has a right to be.
        let namespace = lease.metadata.namespace.clone().filter(|namespace| namespace != home)?;
        let name = mark.account(lease).filter(|_| mark.claims_all(lease))?;
        Some((namespace, name.to_owned()))
    };
    leases.iter().filter_map(claim).collect()
}

async fn review(client: &Client, right: Right, namespace: &str, name: &str) -> kube::Result<bool> {
    let review = SubjectAccessReview { spec: question(right, namespace, name), ..SubjectAccessReview::default() };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    Ok(reviews.create(&PostParams::default(), &review).await?.status.is_some_and(|status| status.allowed))
}

fn question(right: Right, namespace: &str, name: &str) -> SubjectAccessReviewSpec {
    let Right { verb, group, resource, subresource } = right;
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    SubjectAccessReviewSpec {
        user: Some(format!("system:serviceaccount:{namespace}:{name}")),
        groups: Some(vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ]),
        // Without a namespace: in all of them.
        resource_attributes: Some(ResourceAttributes {
            verb: some(verb),
            group: some(group),
            resource: some(resource),
            subresource: some(subresource),
            ..ResourceAttributes::default()
        }),
        ..SubjectAccessReviewSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::mark::Phase;
    use super::super::world_tests::mark_of;
    use super::*;

    fn lease(namespace: &str, mark: &Mark, phase: Phase) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.namespace = Some(namespace.to_owned());
        mark.put(&mut lease, phase);
        lease
    }

    fn accounts<const N: usize>(namespaces: [&str; N], name: &str) -> Accounts {
        namespaces.map(|namespace| (namespace.to_owned(), name.to_owned())).into()
    }

    fn late() -> Result<bool, RequestError> {
        Err(RequestError::Late(Duration::ZERO))
    }

    fn refusal() -> Result<bool, RequestError> {
        let status = kube::core::Status { code: 403, ..kube::core::Status::default() };
        Err(kube::Error::Api(status.boxed()).into())
    }

    #[test]
    fn only_a_claim_of_every_namespace_is_asked_about_and_under_its_own_namespace() {
        let (all, some) = (mark_of("south", &[]), mark_of("south", &["a"]));
        let leases = [
            lease("south", &all, Phase::Leading),
            lease("blocked", &all, Phase::Blocking),
            lease("a", &some, Phase::Leading),
            lease("north", &all, Phase::Leading),
            Lease::default(),
        ];
        assert_eq!(claims(&all, "north", &leases), accounts(["south"], "operator"));
        let question = question(all.right, "south", "operator");
        assert_eq!(question.user.as_deref(), Some("system:serviceaccount:south:operator"));
        assert_eq!(question.resource_attributes.unwrap().namespace, None);
    }

    #[test]
    fn answers_hold_for_a_minute_and_what_cannot_be_asked_is_no() {
        let (mut trust, now) = (Trust::default(), Instant::now());
        let claims = accounts(["a", "b"], "operator");
        assert_eq!(trust.questions(&claims, now), claims);
        trust.take_in("a", Ok(true), now).unwrap();
        trust.take_in("b", refusal(), now).unwrap();
        assert_eq!(trust.trusted(&claims), ["a".to_owned()].into());
        let (soon, later) = (now + MEMORY / 2, now + MEMORY);
        assert!(trust.questions(&Accounts::new(), soon).is_empty());
        assert!(trust.questions(&accounts(["a", "b"], "another"), soon).is_empty(), "a new name is no new question");
        assert_eq!(trust.questions(&claims, later), claims);
        trust.take_in("a", late(), later).unwrap();
        assert_eq!(trust.trusted(&claims), ["a".to_owned()].into(), "the last answer");
        trust.take_in("a", Ok(false), later).unwrap();
        assert!(trust.trusted(&claims).is_empty());
    }

    #[test]
    fn a_review_that_is_not_answered_does_not_make_two_leaders() {
        let mut trust = Trust::default();
        assert!(trust.take_in("a", late(), Instant::now()).is_err());
    }
}
