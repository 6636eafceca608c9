//! Names, images and what runs the pods.

use super::Rule;

/// How long a name may be: a StatefulSet's becomes a label together with a hash, and the second Service's is longer.
const LONGEST: &str = "(has(self.spec.workload) && has(self.spec.workload.type) \
     && self.spec.workload.type == 'StatefulSet' ? 52 \
     : (has(self.spec.service) && has(self.spec.service.type) ? 56 : 63))";

/// The name becomes a Service, which is stricter than a custom resource, and a label.
pub const NAME: Rule = Rule::invalid(
    "",
    ".metadata.name",
    // Names do not change: one that was there before the rule must not keep its status from being written.
    "(oldSelf.hasValue() \
        && (has(oldSelf.value().spec.service) && has(oldSelf.value().spec.service.type)) \
           == (has(self.spec.service) && has(self.spec.service.type))) \
     || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') \
     && size(self.metadata.name) <= (has(self.spec.workload) && has(self.spec.workload.type) \
        && self.spec.workload.type == 'StatefulSet' ? 52 \
        : (has(self.spec.service) && has(self.spec.service.type) ? 56 : 63))",
    "cannot be the name of a Service: use up to %d lower-case letters, digits and '-', starting with a letter and \
     not ending with '-'",
)
.with(&[LONGEST]);

/// One of them names the image; a defaulted one gives way.
pub const IMAGE_AND_VERSION: Rule = Rule::invalid(
    "spec",
    ".version",
    "!has(self.version) || !has(self.image) || self.image == '' || self.image == 'memcached:1.6'",
    "not together with an image of your own: give one of version and image",
)
.forbidden();

/// What runs the pods stays. Where it was not said, the status says what there is; before there was a choice, that was a
/// Deployment. To write it down is no change, and neither is to leave it out.
pub const WORKLOAD_TYPE: Rule = Rule::invalid(
    "",
    ".spec.workload.type",
    "!oldSelf.hasValue() || !has(self.spec.workload) || !has(self.spec.workload.type) \
     || self.spec.workload.type == (has(oldSelf.value().spec.workload) && has(oldSelf.value().spec.workload.type) \
        ? oldSelf.value().spec.workload.type \
        : (has(self.status) && has(self.status.workloadType) ? self.status.workloadType : 'Deployment'))",
    "cannot be changed: make another cache with the other type",
);

/// A rollout takes longer than a pod waits.
pub const DEADLINE: Rule = Rule::invalid(
    "spec.workload.rollout",
    ".progressDeadlineSeconds",
    "!has(self.progressDeadlineSeconds) || !has(self.minReadySeconds) \
     || self.progressDeadlineSeconds > self.minReadySeconds",
    "%d is not more than minReadySeconds %d: every rollout would count as stuck",
)
.with(&["self.progressDeadlineSeconds", "self.minReadySeconds"]);

/// memcached cannot keep both tiers across a restart.
pub const WARM_AND_DISK: Rule = Rule::invalid(
    "spec",
    ".warmRestart.enabled",
    "!has(self.warmRestart) || !self.warmRestart.enabled || !has(self.extstore)",
    "not together with spec.extstore: memcached cannot keep both across a restart",
)
.forbidden();

/// Only a pod that stays can keep its memory.
pub const WARM_DEPLOYMENT: Rule = Rule::invalid(
    "spec",
    ".warmRestart.enabled",
    "!has(self.warmRestart) || !self.warmRestart.enabled || has(self.extstore) \
     || !has(self.workload) || !has(self.workload.type) || self.workload.type == 'StatefulSet'",
    "needs spec.workload.type StatefulSet: a Deployment replaces its pods",
);
