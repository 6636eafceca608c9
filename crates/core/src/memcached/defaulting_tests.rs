use super::*;

fn object(spec: &Value) -> Value {
    json!({"metadata": {"name": "sessions"}, "spec": spec})
}

/// An object whose fields somebody owns.
fn owned(spec: &Value, fields: &[&str]) -> Value {
    let fields: Object = fields.iter().map(|field| (format!("f:{field}"), json!({}))).collect();
    let manager = json!({"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": fields}});
    json!({"metadata": {"name": "sessions", "managedFields": [manager]}, "spec": spec})
}

fn created(spec: &Value) -> Value {
    fill(None, &object(spec))["spec"].clone()
}

fn updated(old: &Value, new: &Value) -> Value {
    fill(Some(&object(old)), &object(new))["spec"].clone()
}

#[test]
fn a_new_cache_says_what_it_gets() {
    assert_eq!(
        created(&json!({})),
        json!({
            "replicas": 1,
            "image": "memcached:1.6",
            "memcached": {
                "maxMemoryMB": 64, "maxConnections": 1024, "threads": 4, "maxItemSize": "1m", "verbosity": 0,
            },
        })
    );
}

#[test]
fn what_is_given_stays() {
    let given = json!({
        "replicas": 0, "image": "example.org/cache:1", "memcached": {"threads": 8, "extraArgs": ["-M"]},
        "workload": {"type": "StatefulSet", "rollout": {"minReadySeconds": 5}},
    });
    let filled = created(&given);
    assert_eq!((&filled["replicas"], &filled["image"]), (&json!(0), &given["image"]));
    assert_eq!((&filled["memcached"]["threads"], &filled["memcached"]["extraArgs"]), (&json!(8), &json!(["-M"])));
    assert_eq!(filled["workload"], given["workload"]);
}

#[test]
fn sections_are_filled_where_they_are_and_not_made_up() {
    let filled = created(&json!({
        "monitoring": {"enabled": true, "serviceMonitor": {"interval": "60s"}},
        "highAvailability": {"gracefulShutdown": {"enabled": true}, "podDisruptionBudget": {"enabled": true}},
    }));
    assert_eq!(filled["monitoring"]["exporterImage"], STOCK_EXPORTER);
    assert_eq!(filled["monitoring"]["serviceMonitor"], json!({"interval": "60s", "scrapeTimeout": "10s"}));
    assert_eq!(
        filled["highAvailability"],
        json!({
            "gracefulShutdown": {"enabled": true, "preStopDelaySeconds": 10, "terminationGracePeriodSeconds": 30},
            "podDisruptionBudget": {"enabled": true},
        })
    );
    let off = created(&json!({"monitoring": {"enabled": false}, "autoscaling": {"enabled": false}}));
    assert_eq!((&off["monitoring"], &off["autoscaling"]), (&json!({"enabled": false}), &json!({"enabled": false})));
}

#[test]
fn an_autoscaler_gets_its_metric_and_its_stabilization_window() {
    let filled = created(&json!({"autoscaling": {"enabled": true, "maxReplicas": 3, "metrics": []}}));
    assert!(filled["replicas"].is_null());
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    assert_eq!(filled["autoscaling"]["metrics"][0]["resource"], json!({"name": "cpu", "target": target}));
    assert_eq!(filled["autoscaling"]["behavior"], json!({"scaleDown": {"stabilizationWindowSeconds": 300}}));
    let own = json!({"enabled": true, "metrics": [{"type": "Pods"}], "behavior": {}});
    assert_eq!(created(&json!({"autoscaling": own}))["autoscaling"], own);
}

#[test]
fn a_count_that_nobody_gave_makes_way_for_an_autoscaler() {
    let old = json!({"replicas": 1});
    let new = json!({"replicas": 1, "autoscaling": {"enabled": true, "maxReplicas": 3}});
    assert!(updated(&old, &new)["replicas"].is_null());
    let fill_owned = |fields: &[&str]| fill(Some(&object(&old)), &owned(&new, fields));
    assert!(fill_owned(&["autoscaling"])["spec"]["replicas"].is_null());
    assert_eq!(fill_owned(&["replicas"])["spec"]["replicas"], 1, "refused by its rule, not dropped in silence");
    let mut scaled = owned(&new, &["replicas"]);
    scaled["metadata"]["managedFields"][0]["subresource"] = json!("scale");
    let filled = fill(Some(&object(&old)), &scaled);
    assert!(filled["spec"]["replicas"].is_null(), "kubectl scale declares nothing");
}

#[test]
fn turning_an_autoscaler_off_takes_a_given_count_or_keeps_the_running_one() {
    let old = json!({"autoscaling": {"enabled": true, "maxReplicas": 9}});
    let off = json!({"autoscaling": {"enabled": false, "maxReplicas": 9}});
    assert!(updated(&old, &off)["replicas"].is_null());
    assert!(updated(&off, &off)["replicas"].is_null(), "nor does a later change bring it down to one");
    let given = json!({"replicas": 3, "autoscaling": {"enabled": false}});
    assert_eq!(updated(&old, &given)["replicas"], 3);
}

#[test]
fn an_update_that_does_not_say_a_count_keeps_it() {
    assert_eq!(updated(&json!({"replicas": 5}), &json!({}))["replicas"], 5);
    assert_eq!(updated(&json!({"replicas": 5}), &json!({"replicas": 2}))["replicas"], 2);
    assert!(updated(&json!({}), &json!({}))["replicas"].is_null(), "made without a webhook: what runs, runs on");
}

#[test]
fn a_version_needs_no_image_and_a_filled_one_gives_way() {
    assert!(created(&json!({"version": "1.6.45"}))["image"].is_null());
    let both = json!({"version": "1.6.45", "image": "memcached:1.6"});
    assert!(updated(&json!({"image": "memcached:1.6"}), &both)["image"].is_null());
    let given = fill(None, &owned(&both, &["image"]));
    assert_eq!(given["spec"]["image"], "memcached:1.6");
    let other = json!({"version": "1.6.45", "image": "example.org/cache:1"});
    assert_eq!(created(&other)["image"], "example.org/cache:1", "refused by its rule");
}

#[test]
fn what_runs_the_pods_is_not_written_down() {
    assert!(updated(&json!({"workload": {"type": "StatefulSet"}}), &json!({}))["workload"].is_null());
    assert!(updated(&json!({}), &json!({}))["workload"].is_null(), "the child says it");
}

#[test]
fn what_was_built_of_silence_stays_as_it_is() {
    let silent = updated(&json!({"replicas": 1}), &json!({"replicas": 2}));
    assert_eq!(silent["image"], Value::Null, "another version may have another default");
    assert_eq!(silent["memcached"], Value::Null);
    let filled = updated(&json!({"image": "memcached:1.5"}), &json!({}));
    assert_eq!(filled["image"], "memcached:1.5", "the default of another version, filled in then");
    let monitored = json!({"monitoring": {"enabled": true, "exporterImage": "exporter:1"}});
    let silent = updated(&monitored, &json!({"monitoring": {"enabled": true}}));
    assert_eq!(silent["monitoring"]["exporterImage"], "exporter:1");
    let turned_on = updated(&json!({}), &json!({"monitoring": {"enabled": true}}));
    assert_eq!(turned_on["monitoring"]["exporterImage"], STOCK_EXPORTER, "a new section is filled in");
}

#[test]
fn an_object_without_a_spec_is_left_to_the_schema() {
    let empty = json!({"metadata": {"name": "sessions"}});
    assert_eq!(fill(None, &empty), empty);
}
