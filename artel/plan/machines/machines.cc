#include "artel/plan/machines/machines.h"

#include <cmath>
#include <numbers>
#include <set>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::plan {
namespace {

const Switch* find_switch(const Machines& machines, const std::string& name) {
  const auto found = std::ranges::find(machines.switches, name, &Switch::name);
  return found == machines.switches.end() ? nullptr : &*found;
}

const Switch& known_switch(const Machines& machines, const EntryPlace& place, std::string_view key,
                           const std::string& name) {
  const Switch* const found = find_switch(machines, name);
  std::vector<std::string> names;
  for (const Switch& one : machines.switches) names.push_back(one.name);
  require(found != nullptr, ErrorKind::not_found, "[{}] {}: no switch '{}'{}", place.of(key), key,
          name, did_you_mean(name, names));
  return *found;
}

void check_positive(const EntryPlace& place, std::string_view key, double value) {
  if (value > 0) return;
  require(place.keys.contains(key), ErrorKind::invalid_argument,
          "[{}] {}: missing; expected more than 0", place.entry, key);
  fail(ErrorKind::invalid_argument, "[{}] {}: got {}, expected more than 0", place.of(key), key,
       value);
}

void check_link(const EntryPlace& place, std::string_view bandwidth, std::string_view latency,
                const comm::LinkCost& link) {
  check_positive(place, bandwidth, link.bandwidth);
  require(link.latency >= 0 && link.latency <= 1e3, ErrorKind::invalid_argument,
          "[{}] {}: got {} s, expected 0 to 1,000 s", place.of(latency), latency, link.latency);
}

// The root above a switch. Throws for a cycle.
std::string root_above(const Machines& machines, const EntryPlace& place, const Switch& from) {
  std::set<std::string> seen;
  const Switch* at = &from;
  while (!at->uplink.empty()) {
    require(seen.insert(at->name).second, ErrorKind::invalid_argument,
            "[{}] uplink: switches {} form a cycle; expected a tree", place.of("uplink"),
            join({seen.begin(), seen.end()}, ", "));
    at = &known_switch(machines, place, "uplink", at->uplink);
  }
  return at->name;
}

void check_kind(const MachineKind& kind, const EntryPlace& place) {
  const auto positive = [&](std::string_view key, double value) {
    check_positive(place, key, value);
  };
  positive("count", static_cast<double>(kind.count));
  positive("devices", static_cast<double>(kind.devices));
  positive("cores", static_cast<double>(kind.cores));
  positive("flops", kind.flops);
  positive("memory", kind.memory);
  positive("memory_bandwidth", kind.memory_bandwidth);
  check_link(place, "network", "latency", kind.network);
  check_link(place, "inside", "inside_latency", kind.inside);
}

// The switches between a machine of the kind and the root.
std::vector<const Switch*> path_of(const Machines& machines, const MachineKind& kind) {
  std::vector<const Switch*> path;
  if (machines.switches.empty()) return path;
  const Switch* at = kind.at.empty() ? machines.switches.data() : find_switch(machines, kind.at);
  for (; at != nullptr; at = find_switch(machines, at->uplink)) path.push_back(at);
  return path;
}

// Reduces each property of the pool to the minimum of both.
void join_kind(MachineKind& pool, const MachineKind& kind) {
  const bool slower = kind.flops < pool.flops;
  pool.name += " + " + kind.name;
  if (slower) {
    pool.flops = kind.flops;
    pool.ops = kind.ops;
    pool.cores = kind.cores;
  }
  pool.devices = std::min(pool.devices, kind.devices);
  pool.memory = std::min(pool.memory, kind.memory);
  pool.memory_bandwidth = std::min(pool.memory_bandwidth, kind.memory_bandwidth);
  pool.variation = std::max(pool.variation, kind.variation);
  pool.fit_error = std::max(pool.fit_error, kind.fit_error);
  const auto slowest = [](comm::LinkCost& one, const comm::LinkCost& other) {
    one.bandwidth = std::min(one.bandwidth, other.bandwidth);
    one.latency = std::max(one.latency, other.latency);
  };
  slowest(pool.network, kind.network);
  slowest(pool.inside, kind.inside);
}

// Adds the cost of the uplinks between two machines to the link.
void cross_uplinks(comm::LinkCost& link, std::vector<const Switch*> one,
                   std::vector<const Switch*> other) {
  while (!one.empty() && !other.empty() && one.back() == other.back()) {
    one.pop_back();
    other.pop_back();
  }
  for (const auto* path : {&one, &other})
    for (const Switch* crossed : *path) {
      link.bandwidth = std::min(link.bandwidth, crossed->link.bandwidth);
      link.latency += crossed->link.latency;
    }
}

// Divides the cores of emulated machines among those in use.
void share_cores(MachineKind& kind, int64_t machines) {
  if (!kind.shared_cores) return;
  const auto sharing = static_cast<double>(machines);
  kind.flops /= sharing;
  kind.memory_bandwidth /= sharing;
  for (auto& [name, speed] : kind.ops) {
    speed.flops /= sharing;
    speed.bandwidth /= sharing;
    speed.weight_bandwidth /= sharing;
    speed.overhead *= sharing;
  }
}

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace

const std::vector<std::string>& known_op_classes() {
  static const std::vector<std::string> names = {"attention",
                                                 "attention_backward",
                                                 "convolution",
                                                 "convolution_weights",
                                                 "convolution_1x1",
                                                 "convolution_1x1_weights",
                                                 "convolution_3x3",
                                                 "convolution_3x3_weights",
                                                 "grouped_convolution",
                                                 "grouped_convolution_weights",
                                                 "normalisation",
                                                 "other",
                                                 "pooling",
                                                 "product",
                                                 "recurrence"};
  return names;
}

// The integral of 1 - F^n above 0, minus that of F^n below 0. The trapezoidal rule is exact to many
// digits for such smooth functions.
double expected_largest(int64_t count) {
  constexpr double kStep = 0.05, kEnd = 9;
  if (count < 2) return 0;
  double sum = 0;
  for (double x = kStep / 2; x < kEnd; x += kStep) {
    const auto n = static_cast<double>(count);
    sum += 1 - std::pow(normal_distribution(x), n) - std::pow(normal_distribution(-x), n);
  }
  return sum * kStep;
}

int64_t Machines::workers() const {
  int64_t sum = 0;
  for (const MachineKind& kind : kinds) sum += kind.workers();
  return sum;
}

void check_machines(const Machines& machines, const EntryPlaces& places) {
  require(!machines.kinds.empty(), ErrorKind::invalid_argument,
          "[{}] no machines: expected at least one [[machine]]", machines.name);
  std::string root;
  for (size_t i = 0; i < machines.switches.size(); ++i) {
    const Switch& one = machines.switches[i];
    const EntryPlace& place = places.switches[i];
    require(!one.name.empty(), ErrorKind::invalid_argument, "[{}] name: missing", place.entry);
    require(&known_switch(machines, place, "name", one.name) == &one, ErrorKind::invalid_argument,
            "[{}] name: two switches are called '{}'", place.of("name"), one.name);
    check_link(place, "bandwidth", "latency", one.link);
    const std::string above = root_above(machines, place, one);
    if (root.empty()) root = above;
    require(above == root, ErrorKind::invalid_argument,
            "[{}] uplink: no link between the switches '{}' and '{}'; expected one tree",
            place.of("uplink"), root, above);
  }
  for (size_t i = 0; i < machines.kinds.size(); ++i) {
    const MachineKind& kind = machines.kinds[i];
    check_kind(kind, places.kinds[i]);
    if (!kind.at.empty()) known_switch(machines, places.kinds[i], "switch", kind.at);
    require(!kind.at.empty() || machines.switches.size() < 2, ErrorKind::invalid_argument,
            "[{}] switch: missing; expected the switch of machine '{}', because there are {}",
            places.kinds[i].entry, kind.name, machines.switches.size());
  }
}

Pool pool_of(const Machines& machines, int64_t workers) {
  Pool pool = {.kind = machines.kinds[0], .workers = workers, .machines = 0};
  std::vector<std::vector<const Switch*>> paths;
  bool priced = true;
  int64_t left = workers;
  for (size_t i = 0; i < machines.kinds.size() && left > 0; ++i) {
    const MachineKind& kind = machines.kinds[i];
    const bool last = i + 1 == machines.kinds.size();
    int64_t used = (left + kind.devices - 1) / kind.devices;
    if (used > kind.count && last) pool.exists = false;
    if (!last) used = std::min(used, kind.count);
    left -= used * kind.devices;
    pool.machines += used;
    priced = priced && kind.price > 0;
    pool.price += static_cast<double>(used) * kind.price;
    MachineKind own = kind;
    share_cores(own, used);
    if (i == 0)
      pool.kind = std::move(own);
    else
      join_kind(pool.kind, own);
    paths.push_back(path_of(machines, kind));
  }
  if (!priced) pool.price = 0;
  pool.between = pool.kind.network;
  for (size_t i = 1; i < paths.size(); ++i) cross_uplinks(pool.between, paths[0], paths[i]);
  return pool;
}

}  // namespace artel::plan
