//! Asks the API server who a token belongs to (`TokenReview`) and whether they may (`SubjectAccessReview`).
//! Answers are kept for a minute, under the hash of the token: scrapers come often, and tokens are not for keeping.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::error::Elapsed;

/// How long an answer is good for.
const KEEP: Duration = Duration::from_secs(60);
/// How many answers are kept: more tokens than that in a minute are an attack, and only cost their sender time.
const KEEP_AT_MOST: usize = 1024;
/// How many tokens are asked about at once, so that unknown clients cannot flood the API server through us.
const AT_ONCE: usize = 4;
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// What the API server says about the bearer of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// They may.
    Allowed,
    /// The token is nobody's.
    Unauthenticated,
    /// They may not.
    Forbidden,
}

/// Why there is no permission.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The API server refused to review.
    #[error("failed to have an access reviewed")]
    Review(#[from] kube::Error),
    /// The API server took too long.
    #[error("failed to have an access reviewed in time")]
    Timeout(#[from] Elapsed),
}

/// Decides who may `get` a path of ours, by RBAC.
pub struct Access {
    client: Client,
    path: &'static str,
    answers: Mutex<Answers>,
    reviews: Semaphore,
}

impl Access {
    /// Decides for one path, through a client that may create both reviews.
    pub fn new(client: Client, path: &'static str) -> Self {
        Self { client, path, answers: Mutex::default(), reviews: Semaphore::new(AT_ONCE) }
    }

    /// What may the bearer of this token do?
    pub async fn permission(&self, token: &str) -> Result<Permission, AccessError> {
        let hash = Sha256::digest(token.as_bytes()).into();
        if let Some(permission) = self.answers().get(&hash, Instant::now()) {
            return Ok(permission);
        }
        let permission = tokio::time::timeout(REVIEW_TIMEOUT, async {
            // The semaphore is never closed; who waited may find that somebody else has asked meanwhile.
            let _permit = self.reviews.acquire().await.ok();
            if let Some(permission) = self.answers().get(&hash, Instant::now()) {
                return Ok(permission);
            }
            self.review(token).await
        })
        .await??;
        self.answers().put(hash, permission, Instant::now());
        Ok(permission)
    }

    async fn review(&self, token: &str) -> kube::Result<Permission> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews = Api::<TokenReview>::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(Permission::Unauthenticated);
        };
        let review = SubjectAccessReview { spec: self.question(user), ..SubjectAccessReview::default() };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let allowed =
            reviews.create(&PostParams::default(), &review).await?.status.is_some_and(|status| status.allowed);
        Ok(if allowed { Permission::Allowed } else { Permission::Forbidden })
    }

    fn question(&self, user: UserInfo) -> SubjectAccessReviewSpec {
        let UserInfo { extra, groups, uid, username } = user;
        let attributes = NonResourceAttributes { path: Some(self.path.to_owned()), verb: Some("get".to_owned()) };
        SubjectAccessReviewSpec {
            extra,
            groups,
            non_resource_attributes: Some(attributes),
            resource_attributes: None,
            uid,
            user: username,
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers of the last minute.
#[derive(Debug, Default)]
struct Answers {
    by_hash: HashMap<[u8; 32], (Instant, Permission)>,
}

impl Answers {
    fn get(&self, hash: &[u8; 32], now: Instant) -> Option<Permission> {
        let (since, permission) = self.by_hash.get(hash)?;
        (now.saturating_duration_since(*since) < KEEP).then_some(*permission)
    }

    fn put(&mut self, hash: [u8; 32], permission: Permission, now: Instant) {
        if self.by_hash.len() >= KEEP_AT_MOST {
            self.by_hash.retain(|_, (since, _)| now.saturating_duration_since(*since) < KEEP);
        }
        if self.by_hash.len() >= KEEP_AT_MOST {
            self.by_hash.clear();
        }
        self.by_hash.insert(hash, (now, permission));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: usize) -> [u8; 32] {
        Sha256::digest(number.to_string().as_bytes()).into()
    }

    #[test]
    fn an_answer_is_good_for_a_minute() {
        let (mut answers, start) = (Answers::default(), Instant::now());
        answers.put(hash(1), Permission::Forbidden, start);
        assert_eq!(answers.get(&hash(1), start + Duration::from_secs(59)), Some(Permission::Forbidden));
        assert_eq!(answers.get(&hash(1), start + Duration::from_secs(60)), None);
        assert_eq!(answers.get(&hash(2), start), None);
    }

    #[test]
    fn a_flood_of_tokens_does_not_fill_the_memory() {
        let (mut answers, start) = (Answers::default(), Instant::now());
        for number in 0..3 * KEEP_AT_MOST {
            answers.put(hash(number), Permission::Unauthenticated, start);
            assert!(answers.by_hash.len() <= KEEP_AT_MOST);
        }
    }

    #[test]
    fn old_answers_make_room_before_new_ones_do() {
        let (mut answers, start) = (Answers::default(), Instant::now());
        for number in 0..KEEP_AT_MOST - 1 {
            answers.put(hash(number), Permission::Unauthenticated, start);
        }
        let later = start + Duration::from_secs(50);
        answers.put(hash(KEEP_AT_MOST), Permission::Allowed, later);
        let end = start + Duration::from_secs(70);
        answers.put(hash(KEEP_AT_MOST + 1), Permission::Allowed, end);
        assert_eq!(answers.get(&hash(KEEP_AT_MOST), end), Some(Permission::Allowed));
        assert_eq!(answers.by_hash.len(), 2);
    }
}
