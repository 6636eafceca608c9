use serde_json::json;

use super::*;

/// A kind whose pods are told their greeting, and a token that may be replaced in place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Inputs {
    fields: PodFields,
    token: String,
}

impl TemplateInputs for Inputs {
    fn is_in_force(kept: &KeptTemplate<Self>, now: &Self) -> bool {
        kept.inputs.fields.is_same(&now.fields)
    }

    fn refresh(kept: &mut KeptTemplate<Self>, now: &Self) -> bool {
        if kept.inputs.token == now.token {
            return false;
        }
        kept.inputs.token.clone_from(&now.token);
        kept.template.metadata.get_or_insert_default().name = Some(now.token.clone());
        true
    }
}

fn inputs(declared: &[(&'static str, Value)], default: &str, token: &str) -> Inputs {
    Inputs { fields: PodFields::new(declared.to_vec(), [("greeting", json!(default))]), token: token.into() }
}

fn template(scheduler: &str) -> PodTemplateSpec {
    serde_json::from_value(json!({"spec": {"containers": [], "schedulerName": scheduler}})).unwrap()
}

fn first() -> KeptTemplate<Inputs> {
    decide(None, None, inputs(&[], "hello", "a"), &template("old")).new_revision.unwrap()
}

#[test]
fn another_builder_changes_nothing_and_is_announced() {
    let in_force = decide(Some(first()), None, inputs(&[], "good day", "a"), &template("new"));
    assert_eq!(in_force.template.spec, template("old").spec);
    assert_eq!((in_force.new_revision, in_force.newer_defaults.len()), (None, 1));
}

#[test]
fn a_changed_field_is_built_and_kept() {
    let now = inputs(&[("greeting", json!("good day"))], "hello", "a");
    let in_force = decide(Some(first()), None, now.clone(), &template("new"));
    assert_eq!((&in_force.template, &in_force.newer_defaults), (&template("new"), &Vec::new()));
    assert_eq!(in_force.new_revision.unwrap().inputs, now);
}

#[test]
fn what_may_be_replaced_in_place_leaves_the_rest_as_it_was() {
    let in_force = decide(Some(first()), None, inputs(&[], "hello", "b"), &template("new"));
    assert_eq!(in_force.template.spec, template("old").spec);
    assert_eq!(in_force.template.metadata.unwrap().name.as_deref(), Some("b"));
    assert_eq!(in_force.new_revision.unwrap().inputs.token, "b");
}

#[test]
fn a_template_without_a_revision_is_taken_as_found_only_the_first_time() {
    let found = Some(template("found"));
    let taken = decide(None, found.clone(), inputs(&[], "hello", "a"), &template("new"));
    assert_eq!(taken.template, template("found"));
    assert!(taken.new_revision.unwrap().found);
    let kept = decide(Some(first()), found, inputs(&[], "hello", "a"), &template("new"));
    assert_eq!(kept.template.spec, template("old").spec);
}

#[test]
fn revisions_count_up_and_the_latest_is_in_force() {
    let metadata = ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() };
    let mut revisions = Vec::new();
    for _ in 0..REVISION_HISTORY_LIMIT + 2 {
        revisions.push(first().to_revision(metadata.clone(), &revisions));
    }
    assert_eq!(revisions.iter().map(|one| one.revision).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(outdated(&revisions).iter().map(|one| one.revision).collect::<Vec<_>>(), [1, 2]);
    let names: std::collections::BTreeSet<_> = revisions.iter().map(|one| one.metadata.name.clone()).collect();
    assert_eq!(names.len(), 5, "equal content has another name in another revision");
    assert_eq!(KeptTemplate::latest(&revisions), Some(first()));
    revisions.last_mut().unwrap().data = Some(RawExtension(json!({"inputs": 7})));
    assert_eq!(KeptTemplate::<Inputs>::latest(&revisions), None, "an older one is not in force");
}

#[test]
fn a_field_that_is_new_with_its_default_changes_nothing() {
    // As a CustomResourceDefinition of a newer version fills it in, and a webhook writes it down.
    let older = PodFields::new([], []);
    let silent = PodFields::new([], [("tone", json!("warm"))]);
    let filled = PodFields::new([("tone", json!("warm"))], [("tone", json!("warm"))]);
    let other = PodFields::new([("tone", json!("cold"))], [("tone", json!("warm"))]);
    assert!(older.is_same(&silent) && older.is_same(&filled) && !older.is_same(&other));
    // The older operator put back over what the newer one has kept.
    assert!(silent.is_same(&older) && filled.is_same(&older) && !other.is_same(&older));
}
