//! Whose claim of every namespace is believed. Whoever may write Leases in a namespace can write there what they like,
//! but not make a ServiceAccount of theirs an operator of all namespaces: RBAC has the last word.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};

use super::mark::{Mark, Right};
use super::request::{RequestError, within};
use crate::telemetry::Chain;

/// How long an answer holds.
const MEMORY: Duration = Duration::from_secs(60);

/// A ServiceAccount, by namespace and name.
type Account = (String, String);

/// What RBAC has answered.
#[derive(Debug, Default)]
pub(super) struct Trust {
    answers: BTreeMap<Account, Answer>,
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
        limit: Duration,
    ) -> Result<BTreeSet<String>, RequestError> {
        let claims = claims(mark, home, leases);
        let questions = self.questions(&claims, Instant::now());
        let ask = |account| async { (within(limit, review(client, mark.right, &account)).await, account) };
        for (answer, account) in join_all(questions.into_iter().map(ask)).await {
            self.take_in(account, answer, Instant::now())?;
        }
        Ok(self.trusted(claims))
    }

    /// Whom to ask about. Answers about those who claim nothing any more are forgotten.
    fn questions(&mut self, claims: &BTreeSet<Account>, now: Instant) -> Vec<Account> {
        self.answers.retain(|account, _| claims.contains(account));
        let is_known = |account: &&Account| self.answers.get(*account).is_some_and(|known| now < known.since + MEMORY);
        claims.iter().filter(|account| !is_known(account)).cloned().collect()
    }

    fn take_in(
        &mut self,
        account: Account,
        answer: Result<bool, RequestError>,
        now: Instant,
    ) -> Result<(), RequestError> {
        let (namespace, name) = &account;
        let is_trusted = match answer {
            Ok(is_trusted) => is_trusted,
            Err(error) if error.is_refusal() => {
                let error = Chain(&error);
                tracing::warn!(namespace, name, %error, "cannot ask for this ServiceAccount's rights: not believed");
                false
            }
            // What it was is a better guess than nothing.
            Err(_) if self.answers.contains_key(&account) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !is_trusted && self.answers.get(&account).is_none_or(|known| known.is_trusted) {
            tracing::warn!(
                namespace,
                name,
                "a Lease claims all namespaces for a ServiceAccount that is no operator of all: it claims its own only"
            );
        }
        self.answers.insert(account, Answer { is_trusted, since: now });
        Ok(())
    }

    fn trusted(&self, claims: BTreeSet<Account>) -> BTreeSet<String> {
        let is_trusted = |account: &Account| self.answers.get(account).is_some_and(|known| known.is_trusted);
        claims.into_iter().filter(is_trusted).map(|(namespace, _)| namespace).collect()
    }
}

/// Who claims every namespace, apart from ourselves.
fn claims(mark: &Mark, home: &str, leases: &[Lease]) -> BTreeSet<Account> {
    let claim = |lease: &Lease| {
        // The namespace is the Lease's own, whatever it says: that is where its writer has a right to be.
        let namespace = lease.metadata.namespace.clone().filter(|namespace| namespace != home)?;
        let name = mark.account(lease).filter(|_| mark.claims_all(lease))?;
        Some((namespace, name.to_owned()))
    };
    leases.iter().filter_map(claim).collect()
}

async fn review(client: &Client, right: Right, account: &Account) -> kube::Result<bool> {
    let review = SubjectAccessReview { spec: question(right, account), ..SubjectAccessReview::default() };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    Ok(reviews.create(&PostParams::default(), &review).await?.status.is_some_and(|status| status.allowed))
}

fn question(right: Right, (namespace, name): &Account) -> SubjectAccessReviewSpec {
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

    fn account(namespace: &str) -> Account {
        (namespace.to_owned(), "operator".to_owned())
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
        let claims = claims(&all, "north", &leases);
        assert_eq!(claims.iter().collect::<Vec<_>>(), [&account("south")]);
        let question = question(all.right, &account("south"));
        assert_eq!(question.user.as_deref(), Some("system:serviceaccount:south:operator"));
        assert_eq!(question.resource_attributes.unwrap().namespace, None);
    }

    #[test]
    fn answers_hold_for_a_minute_and_what_cannot_be_asked_is_no() {
        let (mut trust, now) = (Trust::default(), Instant::now());
        let claims: BTreeSet<Account> = ["a", "b"].map(account).into();
        assert_eq!(trust.questions(&claims, now).len(), 2);
        trust.take_in(account("a"), Ok(true), now).unwrap();
        trust.take_in(account("b"), refusal(), now).unwrap();
        assert!(trust.questions(&claims, now + MEMORY / 2).is_empty());
        assert_eq!(trust.trusted(claims.clone()), ["a".to_owned()].into());
        assert_eq!(trust.questions(&claims, now + MEMORY).len(), 2);
        trust.take_in(account("a"), late(), now + MEMORY).unwrap();
        assert_eq!(trust.trusted(claims.clone()), ["a".to_owned()].into(), "the last answer");
        trust.take_in(account("a"), Ok(false), now + MEMORY).unwrap();
        assert!(trust.trusted(claims).is_empty());
    }

    #[test]
    fn a_review_that_is_not_answered_does_not_make_two_leaders() {
        let mut trust = Trust::default();
        assert!(trust.take_in(account("a"), late(), Instant::now()).is_err());
    }
}
