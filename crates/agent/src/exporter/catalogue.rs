//! Which statistic is which metric: the stock exporter's names, types and labels, which dashboards query.

use super::family::{Families, Metric, counter, gauge};
use super::reading::{Figures, Nonsense, Reading, by_class};

type Table = [(&'static str, Metric)];

static UP: Metric = gauge("memcached_up", "Whether memcached answered.");
static VERSION: Metric = gauge("memcached_version", "The version that runs, as a label.");
static COMMANDS: Metric = counter("memcached_commands_total", "Requests by command and outcome.");
static SLAB_COMMANDS: Metric = counter("memcached_slab_commands_total", "Requests by slab, command and outcome.");
static LRU_HITS: Metric = counter("memcached_slab_lru_hits_total", "Hits by slab and part of the LRU.");
static MALLOCED: Metric = gauge("memcached_malloced_bytes", "Memory taken for slab pages.");

/// Commands that hit or miss.
const COMMAND_NAMES: [&str; 6] = ["get", "delete", "incr", "decr", "cas", "touch"];
/// Parts of the LRU: as memcached and as the label calls them.
const LRU_PARTS: [(&str, &str); 4] = [("hot", "hot"), ("warm", "warm"), ("cold", "cold"), ("temp", "temporary")];

#[rustfmt::skip]
static GENERAL: &Table = &[
    ("uptime", counter("memcached_uptime_seconds", "Time since the server started.")),
    ("time", gauge("memcached_time_seconds", "The server's clock, in seconds since 1970.")),
    ("rusage_user", counter("memcached_process_user_cpu_seconds_total", "CPU time spent in the server.")),
    ("rusage_system", counter("memcached_process_system_cpu_seconds_total", "CPU time spent in the kernel for it.")),
    ("bytes", gauge("memcached_current_bytes", "Memory that items take.")),
    ("limit_maxbytes", gauge("memcached_limit_bytes", "Memory that items may take.")),
    ("curr_items", gauge("memcached_current_items", "Items in the cache.")),
    ("total_items", counter("memcached_items_total", "Items ever stored.")),
    ("bytes_read", counter("memcached_read_bytes_total", "Bytes received from clients.")),
    ("bytes_written", counter("memcached_written_bytes_total", "Bytes sent to clients.")),
    ("curr_connections", gauge("memcached_current_connections", "Open connections.")),
    ("total_connections", counter("memcached_connections_total", "Connections ever opened.")),
    ("rejected_connections", counter("memcached_connections_rejected_total", "Connections turned away at the limit.")),
    ("conn_yields", counter("memcached_connections_yielded_total", "Times a busy connection had to let others go first.")),
    ("listen_disabled_num", counter("memcached_connections_listener_disabled_total", "Times the limit of connections stopped the listener.")),
    ("accepting_conns", gauge("memcached_accepting_connections", "Whether new connections are taken.")),
    ("evictions", counter("memcached_items_evicted_total", "Valid items removed to make room.")),
    ("reclaimed", counter("memcached_items_reclaimed_total", "Times the room of an expired item was used again.")),
    ("store_too_large", counter("memcached_item_too_large_total", "Items refused for their size.")),
    ("store_no_memory", counter("memcached_item_no_memory_total", "Items refused for lack of memory.")),
    ("direct_reclaims", counter("memcached_direct_reclaims_total", "Times a request itself had to make room.")),
    ("lru_crawler_starts", counter("memcached_lru_crawler_starts_total", "Runs of the crawler.")),
    ("crawler_items_checked", counter("memcached_lru_crawler_items_checked_total", "Items that the crawler looked at.")),
    ("crawler_reclaimed", counter("memcached_lru_crawler_reclaimed_total", "Expired items that the crawler removed.")),
    ("moves_to_cold", counter("memcached_lru_crawler_moves_to_cold_total", "Items moved to the cold LRU.")),
    ("moves_to_warm", counter("memcached_lru_crawler_moves_to_warm_total", "Items moved from the cold to the warm LRU.")),
    ("moves_within_lru", counter("memcached_lru_crawler_moves_within_lru_total", "Items moved up within the hot or warm LRU.")),
];

/// There with a flash tier only.
#[rustfmt::skip]
static EXTSTORE: &Table = &[
    ("extstore_compact_lost", counter("memcached_extstore_compact_lost_total", "Items lost in compaction for being in use.")),
    ("extstore_compact_rescues", counter("memcached_extstore_compact_rescued_total", "Items that compaction moved to another page.")),
    ("extstore_compact_skipped", counter("memcached_extstore_compact_skipped_total", "Items that compaction dropped for being unused.")),
    ("extstore_page_allocs", counter("memcached_extstore_pages_allocated_total", "Pages taken into use.")),
    ("extstore_page_evictions", counter("memcached_extstore_pages_evicted_total", "Pages emptied to make room.")),
    ("extstore_page_reclaims", counter("memcached_extstore_pages_reclaimed_total", "Empty pages given back.")),
    ("extstore_pages_free", gauge("memcached_extstore_pages_free", "Pages without items.")),
    ("extstore_pages_used", gauge("memcached_extstore_pages_used", "Pages with items.")),
    ("extstore_objects_evicted", counter("memcached_extstore_objects_evicted_total", "Items on flash removed to make room.")),
    ("extstore_objects_read", counter("memcached_extstore_objects_read_total", "Items read from flash.")),
    ("extstore_objects_written", counter("memcached_extstore_objects_written_total", "Items written to flash.")),
    ("extstore_objects_used", gauge("memcached_extstore_objects_used", "Items on flash.")),
    ("extstore_bytes_evicted", counter("memcached_extstore_bytes_evicted_total", "Bytes on flash removed to make room.")),
    ("extstore_bytes_written", counter("memcached_extstore_bytes_written_total", "Bytes written to flash.")),
    ("extstore_bytes_read", counter("memcached_extstore_bytes_read_total", "Bytes read from flash.")),
    ("extstore_bytes_used", counter("memcached_extstore_bytes_used", "Bytes on flash that items take.")),
    ("extstore_bytes_fragmented", gauge("memcached_extstore_bytes_fragmented", "Bytes of used pages that no item takes.")),
    ("extstore_limit_maxbytes", gauge("memcached_extstore_bytes_limit", "Bytes on flash that items may take.")),
    ("extstore_io_queue", gauge("memcached_extstore_io_queue_depth", "Items that wait for the flash.")),
];

/// There in a proxy only.
#[rustfmt::skip]
static PROXY: &Table = &[
    ("proxy_conn_requests", counter("memcached_proxy_conn_requests_total", "Requests that clients sent to the proxy.")),
    ("proxy_conn_errors", counter("memcached_proxy_conn_errors_total", "Errors of the proxy's connections.")),
    ("proxy_conn_oom", counter("memcached_proxy_conn_oom_total", "Connections of the proxy that found no memory.")),
    ("proxy_req_active", gauge("memcached_proxy_req_active", "Requests under way in the proxy.")),
    ("proxy_config_reloads", counter("memcached_proxy_config_reloads_total", "Times the proxy read its configuration anew.")),
    ("proxy_config_reload_fails", counter("memcached_proxy_config_reload_fails_total", "Times it could not use it.")),
    ("proxy_config_cron_runs", counter("memcached_proxy_config_cron_runs_total", "Runs of the configuration's timers.")),
    ("proxy_config_cron_fails", counter("memcached_proxy_config_cron_fails_total", "Failed runs of the configuration's timers.")),
    ("proxy_backend_total", gauge("memcached_proxy_backend_total", "Servers behind the proxy.")),
    ("proxy_backend_marked_bad", counter("memcached_proxy_backend_marked_bad_total", "Times a server was found bad.")),
    ("proxy_backend_failed", gauge("memcached_proxy_backend_failed", "Servers that have failed.")),
    ("proxy_request_failed_depth", counter("memcached_proxy_request_failed_depth_total", "Requests refused for a full queue.")),
    ("round_robin_fallback", counter("memcached_round_robin_fallback_total", "Connections given to the next thread for want of a better one.")),
    ("unexpected_napi_ids", counter("memcached_unexpected_napi_ids_total", "Connections from an unknown network queue.")),
];

/// What the crawler works with, there while it is on.
#[rustfmt::skip]
static CRAWLER: &Table = &[
    ("lru_crawler", gauge("memcached_lru_crawler_enabled", "Whether the crawler is on.")),
    ("lru_crawler_sleep", gauge("memcached_lru_crawler_sleep", "Microseconds that the crawler rests between items.")),
    ("lru_crawler_tocrawl", gauge("memcached_lru_crawler_to_crawl", "Items that the crawler looks at in a run; 0 for all.")),
    ("lru_maintainer_thread", gauge("memcached_lru_crawler_maintainer_thread", "Whether a thread keeps the LRU in order.")),
    ("hot_lru_pct", gauge("memcached_lru_crawler_hot_percent", "Share of memory for the hot LRU.")),
    ("warm_lru_pct", gauge("memcached_lru_crawler_warm_percent", "Share of memory for the warm LRU.")),
    ("hot_max_factor", gauge("memcached_lru_crawler_hot_max_factor", "Idle time that ends the hot LRU, as a share of the cold LRU's age.")),
    ("warm_max_factor", gauge("memcached_lru_crawler_warm_max_factor", "Idle time that ends the warm LRU, as a share of the cold LRU's age.")),
];

static SETTINGS: &Table = &[("maxconns", gauge("memcached_max_connections", "Connections that may be open."))];

/// From the report on items, by slab.
#[rustfmt::skip]
static ITEMS: &Table = &[
    ("number", gauge("memcached_slab_current_items", "Items of the slab.")),
    ("age", gauge("memcached_slab_items_age_seconds", "Age of the slab's oldest item.")),
    ("number_hot", gauge("memcached_slab_hot_items", "Items in the hot LRU.")),
    ("number_warm", gauge("memcached_slab_warm_items", "Items in the warm LRU.")),
    ("number_cold", gauge("memcached_slab_cold_items", "Items in the cold LRU.")),
    ("number_temp", gauge("memcached_slab_temporary_items", "Items in the temporary LRU.")),
    ("age_hot", gauge("memcached_slab_hot_age_seconds", "Age of the oldest item in the hot LRU.")),
    ("age_warm", gauge("memcached_slab_warm_age_seconds", "Age of the oldest item in the warm LRU.")),
    ("mem_requested", gauge("memcached_slab_mem_requested_bytes", "Bytes that items take within the slab.")),
    ("crawler_reclaimed", counter("memcached_slab_items_crawler_reclaimed_total", "Expired items that the crawler removed.")),
    ("evicted", counter("memcached_slab_items_evicted_total", "Valid items removed to make room.")),
    ("evicted_nonzero", counter("memcached_slab_items_evicted_nonzero_total", "Such items that had a time to go.")),
    ("evicted_time", gauge("memcached_slab_items_evicted_time_seconds", "How long the last such item had not been used.")),
    ("evicted_unfetched", counter("memcached_slab_items_evicted_unfetched_total", "Such items that nobody ever got.")),
    ("expired_unfetched", counter("memcached_slab_items_expired_unfetched_total", "Expired items that nobody ever got.")),
    ("outofmemory", counter("memcached_slab_items_outofmemory_total", "Items refused for lack of memory.")),
    ("reclaimed", counter("memcached_slab_items_reclaimed_total", "Times the room of an expired item was used again.")),
    ("tailrepairs", counter("memcached_slab_items_tailrepairs_total", "Times the slab's list had to be repaired.")),
    ("moves_to_cold", counter("memcached_slab_items_moves_to_cold", "Items moved to the cold LRU.")),
    ("moves_to_warm", counter("memcached_slab_items_moves_to_warm", "Items moved from the cold to the warm LRU.")),
    ("moves_within_lru", counter("memcached_slab_items_moves_within_lru", "Items moved up within the hot or warm LRU.")),
];

/// From the report on slabs, by slab.
#[rustfmt::skip]
static SLABS: &Table = &[
    ("chunk_size", gauge("memcached_slab_chunk_size_bytes", "Size of a chunk.")),
    ("chunks_per_page", gauge("memcached_slab_chunks_per_page", "Chunks in a page.")),
    ("total_pages", gauge("memcached_slab_current_pages", "Pages of the slab.")),
    ("total_chunks", gauge("memcached_slab_current_chunks", "Chunks of the slab.")),
    ("used_chunks", gauge("memcached_slab_chunks_used", "Chunks that hold items.")),
    ("free_chunks", gauge("memcached_slab_chunks_free", "Chunks that wait for items.")),
    ("free_chunks_end", gauge("memcached_slab_chunks_free_end", "Chunks at the end of the last page that were never used.")),
];

/// What is told when memcached has nothing to say.
pub fn down() -> Families {
    let mut families = Families::default();
    families.add(&UP, &[], 0.0);
    families
}

/// All metrics of a scrape.
pub fn families(reading: &Reading) -> Result<Families, Nonsense> {
    let general = Figures::of(&reading.general);
    // Every memcached has one: whoever ends an empty list is none.
    let version = general.text("version").ok_or_else(|| Nonsense::new("version", ""))?;
    let mut families = Families::default();
    families.add(&UP, &[], 1.0);
    families.add(&VERSION, &[("version", version)], 1.0);
    add_table(&mut families, GENERAL, &general, &[])?;
    add_commands(&mut families, &general)?;
    if general.text("extstore_limit_maxbytes").is_some() {
        add_table(&mut families, EXTSTORE, &general, &[])?;
    }
    if general.text("proxy_backend_total").is_some() {
        add_table(&mut families, PROXY, &general, &[])?;
    }
    let settings = Figures::of(&reading.settings);
    add_table(&mut families, SETTINGS, &settings, &[])?;
    if settings.text("lru_crawler") == Some("yes") {
        add_table(&mut families, CRAWLER, &settings, &[])?;
    }
    add_items(&mut families, reading)?;
    add_slabs(&mut families, reading)?;
    Ok(families)
}

fn add_table(
    families: &mut Families,
    table: &'static Table,
    figures: &Figures<'_>,
    labels: &[(&str, &str)],
) -> Result<(), Nonsense> {
    for (statistic, metric) in table {
        if let Some(value) = figures.number(statistic)? {
            families.add(metric, labels, value);
        }
    }
    Ok(())
}

fn add_commands(families: &mut Families, figures: &Figures<'_>) -> Result<(), Nonsense> {
    let mut add = |command: &str, status: &str, value: Option<f64>| {
        if let Some(value) = value {
            families.add(&COMMANDS, &[("command", command), ("status", status)], value);
        }
    };
    for command in COMMAND_NAMES {
        add(command, "hit", figures.number(&format!("{command}_hits"))?);
        add(command, "miss", figures.number(&format!("{command}_misses"))?);
    }
    add("cas", "badval", figures.number("cas_badval")?);
    add("flush", "hit", figures.number("cmd_flush")?);
    add("set", "hit", sets(figures, &["cas_hits", "cas_misses", "cas_badval"])?);
    Ok(())
}

/// memcached counts every cas among the sets as well.
fn sets(figures: &Figures<'_>, cas: &[&str]) -> Result<Option<f64>, Nonsense> {
    let (sets, cas) = (figures.number("cmd_set")?, figures.sum(cas)?);
    Ok(sets.zip(cas).map(|(sets, cas)| (sets - cas).max(0.0)))
}

fn add_items(families: &mut Families, reading: &Reading) -> Result<(), Nonsense> {
    for (class, figures) in by_class(&reading.items, "items:")? {
        let class = class.to_string();
        add_table(families, ITEMS, &figures, &[("slab", &class)])?;
        for (part, label) in LRU_PARTS {
            if let Some(value) = figures.number(&format!("hits_to_{part}"))? {
                families.add(&LRU_HITS, &[("slab", &class), ("lru", label)], value);
            }
        }
    }
    Ok(())
}

fn add_slabs(families: &mut Families, reading: &Reading) -> Result<(), Nonsense> {
    if let Some(value) = Figures::of(&reading.slabs).number("total_malloced")? {
        families.add(&MALLOCED, &[], value);
    }
    for (class, figures) in by_class(&reading.slabs, "")? {
        let class = class.to_string();
        add_table(families, SLABS, &figures, &[("slab", &class)])?;
        let mut add = |command: &str, status: &str, value: Option<f64>| {
            if let Some(value) = value {
                let labels = [("slab", &*class), ("command", command), ("status", status)];
                families.add(&SLAB_COMMANDS, &labels, value);
            }
        };
        for command in COMMAND_NAMES {
            add(command, "hit", figures.number(&format!("{command}_hits"))?);
        }
        add("cas", "badval", figures.number("cas_badval")?);
        add("set", "hit", sets(&figures, &["cas_hits", "cas_badval"])?);
    }
    Ok(())
}
