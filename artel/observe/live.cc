#include "artel/observe/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"

namespace artel::observe {
namespace {

using Json = nlohmann::ordered_json;

// Calls field(name, member) for each member, for both reading and writing.
template <typename Worker>
void visit(Worker& worker, auto&& field) {
  field("name", worker.name);
  field("host", worker.host);
  field("process", worker.process);
  field("server", worker.server);
  field("cores", worker.cores);
  field("silent_seconds", worker.silent_seconds);
  field("doing", worker.doing);
  field("step", worker.step);
  field("lanes", worker.lanes);
  field("mesh", worker.mesh);
  field("stage", worker.stage);
  field("samples_per_second", worker.samples_per_second);
  field("computing", worker.computing);
  field("waiting_for_data", worker.data);
  field("waiting_for_workers", worker.workers);
  field("waiting_for_the_wire", worker.wire_wait);
  field("on_the_wire", worker.wire);
  field("seconds_per_lane", worker.seconds_per_lane);
  field("sent_per_second", worker.sent_per_second);
  field("received_per_second", worker.received_per_second);
  field("processor", worker.processor);
  field("memory_bytes", worker.memory_bytes);
  field("device", worker.device);
  field("device_copied_per_second", worker.device_copied_per_second);
  field("device_memory_bytes", worker.device_memory_bytes);
  field("staleness", worker.staleness);
}

template <typename Event>
void visit_event(Event& event, auto&& field) {
  field("at", event.at);
  field("step", event.step);
  field("kind", event.kind);
  field("text", event.text);
}

template <typename Run>
void visit_run(Run& run, auto&& field) {
  field("at", run.at);
  field("host", run.host);
  field("process", run.process);
  field("step", run.step);
  field("steps", run.steps);
  field("epoch", run.epoch);
  field("epochs", run.epochs);
  field("loss", run.loss);
  field("seconds", run.seconds);
  field("samples_per_second", run.samples_per_second);
  field("seconds_left", run.seconds_left);
  field("seconds_per_step", run.seconds_per_step);
  field("forecast_seconds", run.forecast_seconds);
  field("strategy", run.strategy);
  field("exchange", run.exchange);
  field("lanes", run.lanes);
  field("device", run.device);
}

// Unknown values are omitted.
struct Writer {
  Json& json;
  template <typename T>
  void operator()(const char* name, const T& value) {
    json[name] = value;
  }
  void operator()(const char* name, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) json[name] = *value;
  }
};

struct Reader {
  const nlohmann::json& json;
  template <typename T>
  void operator()(const char* name, T& value) {
    if (const auto found = json.find(name); found != json.end()) value = found->get<T>();
    // Escapes control characters, because the file is untrusted.
    if constexpr (std::is_same_v<T, std::string>) value = printable_line(value);
  }
  void operator()(const char* name, std::optional<double>& value) {
    if (const auto found = json.find(name); found != json.end() && found->is_number())
      value = found->get<double>();
  }
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

constexpr double kSilent = 5;       // seconds
constexpr double kMuchData = 0.15;  // share of the time
constexpr double kMuchSlower = 1.3;
constexpr double kMuchLess = 0.6;
constexpr double kMuchWaiting = 0.2, kSomeWaiting = 0.05;

Diagnosis silent_worker(const LiveRun& run) {
  const auto most = std::ranges::max_element(run.workers, {}, &LiveWorker::silent_seconds);
  if (most == run.workers.end() || most->silent_seconds < kSilent) return {};
  return {Diagnosis::Kind::silent, most->name,
          fmt::format("{} on {} has been silent for {:.0f} s{}: its process hangs, or the machine "
                      "or the network does",
                      most->name, most->host, most->silent_seconds,
                      most->doing.empty() ? "" : fmt::format(", last seen in {}", most->doing))};
}

Diagnosis hungry_worker(const LiveRun& run) {
  const auto share = [](const LiveWorker& worker) { return worker.data.value_or(0); };
  const auto most = std::ranges::max_element(run.workers, {}, share);
  if (most == run.workers.end() || share(*most) < kMuchData) return {};
  return {Diagnosis::Kind::data, most->name,
          fmt::format("{} waits for data {} of its time: raise data.threads, or augment less",
                      most->name, percent(share(*most)))};
}

// The worker on the critical path: it computes while the others wait for it. Null if waiting times
// are similar.
const LiveWorker* critical_worker(const LiveRun& run) {
  const LiveWorker* least = nullptr;
  double waiting = 0;
  int known = 0;
  for (const LiveWorker& worker : run.workers) {
    if (worker.server || !worker.workers || worker.stage >= 0) continue;
    waiting += *worker.workers;
    ++known;
    if (!least || *worker.workers < *least->workers) least = &worker;
  }
  if (known < 2) return nullptr;
  const double others = (waiting - *least->workers) / (known - 1);
  return others - *least->workers >= kSomeWaiting ? least : nullptr;
}

// A device computes, so the worker needs few cores.
bool on_device(const LiveWorker& worker) { return worker.device_memory_bytes > 0; }

// A worker that computes all the time but gets less processor time than it could use.
Diagnosis crowded_worker(const LiveRun& run) {
  const LiveWorker* const critical = critical_worker(run);
  for (const LiveWorker& worker : run.workers) {
    if (worker.server || !worker.processor || !worker.computing || worker.lanes == 0 ||
        on_device(worker))
      continue;
    if (critical ? critical != &worker : worker.workers.value_or(0) >= kMuchWaiting) continue;
    const auto usable = static_cast<double>(std::min<int64_t>(worker.cores, worker.lanes));
    if (*worker.processor >= kMuchLess * *worker.computing * usable) continue;
    return {
        Diagnosis::Kind::crowded, worker.name,
        fmt::format("{} gets only {:.1f} of the {:.0f} core{} that it could use: other programs "
                    "are busy on {}, or a quota limits it{}",
                    worker.name, *worker.processor, usable, usable == 1 ? "" : "s", worker.host,
                    critical ? "; the others wait for it" : "")};
  }
  return {};
}

// A worker with too many lanes: it computes while the others wait, although its lanes take no
// longer than theirs.
Diagnosis overloaded_worker(const LiveRun& run) {
  const LiveWorker* const critical = critical_worker(run);
  if (!critical || critical->lanes == 0) return {};
  double waiting = 0;
  int64_t lanes = 0;
  for (const LiveWorker& worker : run.workers) {
    lanes += worker.lanes;
    if (&worker != critical) waiting = std::max(waiting, worker.workers.value_or(0));
  }
  if (waiting < kMuchWaiting) return {};
  return {Diagnosis::Kind::slow, critical->name,
          fmt::format("the others wait for {} on {} up to {} of their time: it has {} of {} lanes",
                      critical->name, critical->host, percent(waiting), critical->lanes, lanes)};
}

// Finds a slow worker among workers with the same work: its lanes take longer than those of the
// others, and the others wait for it.
Diagnosis slow_worker_among(const std::vector<const LiveWorker*>& workers) {
  const LiveWorker* slowest = nullptr;
  for (const LiveWorker* worker : workers)
    if (worker->seconds_per_lane &&
        (!slowest || *worker->seconds_per_lane > *slowest->seconds_per_lane))
      slowest = worker;
  if (!slowest) return {};
  std::vector<double> others;
  double waiting = 0;
  int64_t lanes = 0;
  for (const LiveWorker* worker : workers) {
    lanes += worker->lanes;
    if (worker == slowest || !worker->seconds_per_lane) continue;
    others.push_back(*worker->seconds_per_lane);
    waiting = std::max(waiting, worker->workers.value_or(0));
  }
  // In a pipeline, all workers, even the slowest one, also wait for other stages.
  if (slowest->stage >= 0) waiting = std::max(0.0, waiting - slowest->workers.value_or(0));
  if (others.empty() || lanes == 0) return {};
  const double times = *slowest->seconds_per_lane / std::max(median(others), 1e-12);
  if (!(times >= kMuchSlower)) return {};
  const bool fewer = slowest->lanes * static_cast<int64_t>(others.size() + 1) < lanes;
  if (!fewer && waiting < kSomeWaiting) return {};
  return {Diagnosis::Kind::slow, slowest->name,
          fmt::format(
              "{} on {} is {:.1f}x slower than the others{}: {}", slowest->name, slowest->host,
              times, slowest->stage >= 0 ? fmt::format(" of stage {}", slowest->stage) : "",
              fewer ? fmt::format("it has been given fewer lanes ({} of {})", slowest->lanes, lanes)
                    : fmt::format("they wait for it {} of their time", percent(waiting)))};
}

// Stages of a pipeline differ in size, so workers are compared with those of their own stage.
Diagnosis slow_worker(const LiveRun& run) {
  std::map<int, std::vector<const LiveWorker*>> stages;
  for (const LiveWorker& worker : run.workers) stages[worker.stage].push_back(&worker);
  for (const auto& [stage, workers] : stages)
    if (Diagnosis found = slow_worker_among(workers); found.kind != Diagnosis::Kind::unknown)
      return found;
  return {};
}

Diagnosis waiting_workers(const LiveRun& run) {
  double waiting = 0;
  int known = 0;
  const LiveWorker* most = nullptr;
  for (const LiveWorker& worker : run.workers) {
    if (!worker.workers) continue;
    waiting += *worker.workers;
    ++known;
    if (!most || *worker.workers > *most->workers) most = &worker;
  }
  if (known < 2 || waiting / known < kMuchWaiting) return {};
  const std::string share = percent(waiting / known);
  if (most->stage >= 0)
    return {Diagnosis::Kind::wire, most->name,
            fmt::format("workers wait for other stages {} of their time: more cluster.lanes make "
                        "the gaps of a pipeline smaller",
                        share)};
  const bool served = std::ranges::any_of(run.workers, &LiveWorker::server);
  const bool together = std::ranges::all_of(
      run.workers, [&](const LiveWorker& worker) { return worker.host == most->host; });
  return {Diagnosis::Kind::wire, "",
          fmt::format("{}workers wait for {} {} of their time; try {}",
                      together ? "" : "the wire limits: ", served ? "servers" : "sums", share,
                      served ? "a larger cluster.delay, more servers or cluster.compress"
                             : "cluster.compress, cluster.local_steps or a larger batch")};
}

Diagnosis idle_cores(const LiveRun& run) {
  for (const LiveWorker& worker : run.workers)
    if (!worker.server && !on_device(worker) && worker.lanes > 0 && worker.lanes < worker.cores &&
        worker.processor && *worker.processor < 0.7 * worker.cores)
      return {Diagnosis::Kind::idle, worker.name,
              fmt::format("{} uses {:.1f} of its {} cores: it has only {} lane{}; raise "
                          "cluster.lanes or the batch",
                          worker.name, *worker.processor, worker.cores, worker.lanes,
                          worker.lanes == 1 ? "" : "s")};
  return {};
}

}  // namespace

std::string to_json(const LiveRun& run) {
  Json json;
  visit_run(run, Writer{json});
  json["workers"] = Json::array();
  for (const LiveWorker& worker : run.workers)
    visit(worker, Writer{json["workers"].emplace_back()});
  json["events"] = Json::array();
  for (const LiveEvent& event : run.events)
    visit_event(event, Writer{json["events"].emplace_back()});
  const Diagnosis diagnosis = diagnose(run);
  json["diagnosis"] = diagnosis.text;
  json["culprit"] = diagnosis.culprit;
  return json.dump(-1, ' ', false, decltype(json)::error_handler_t::replace);
}

LiveRun live_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json json = parse_json(text, where);
  try {
    const auto reader = [&](const nlohmann::json& object) {
      require(object.is_object(), ErrorKind::corrupt, "[{}] expected an object, got {}", where,
              json_excerpt(object));
      return Reader{object};
    };
    LiveRun run;
    visit_run(run, reader(json));
    for (const auto& item : json.at("workers")) visit(run.workers.emplace_back(), reader(item));
    for (const auto& item : json.at("events")) visit_event(run.events.emplace_back(), reader(item));
    return run;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] is not the record of a run: {}", where, error.what());
  }
}

void separate_waiting(std::vector<LiveWorker>& workers) {
  std::optional<double> least;
  int known = 0;
  for (const LiveWorker& worker : workers) {
    // Workers of a pipeline also wait for other stages.
    if (worker.server || !worker.workers || worker.stage >= 0) continue;
    least = std::min(least.value_or(1), *worker.workers);
    ++known;
  }
  if (known < 2) return;
  for (LiveWorker& worker : workers)
    if (!worker.server && worker.workers && worker.stage < 0) worker.wire_wait = least;
}

Diagnosis diagnose(const LiveRun& run) {
  for (const auto& look : {silent_worker, hungry_worker, crowded_worker, slow_worker,
                           overloaded_worker, waiting_workers, idle_cores}) {
    Diagnosis found = look(run);
    if (found.kind != Diagnosis::Kind::unknown) return found;
  }
  double least = 1;
  bool known = false;
  for (const LiveWorker& worker : run.workers) {
    if (!worker.computing) continue;
    known = true;
    least = std::min(least, *worker.computing);
  }
  if (!known) return {Diagnosis::Kind::unknown, "", "nothing has been measured yet"};
  return {Diagnosis::Kind::fine, "",
          run.workers.size() == 1
              ? fmt::format("all is well: it computes {} of its time", percent(least))
              : fmt::format("all is well: every worker computes at least {} of its time",
                            percent(least))};
}

}  // namespace artel::observe
