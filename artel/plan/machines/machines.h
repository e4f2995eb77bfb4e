// The machines of a plan: their speed, memory, network, and price.
//
//   const artel::plan::Machines lab = artel::plan::machines_by_name("lab");
//   artel::println("{} workers", lab.workers());
//
// A worker runs on one device: all cores of a processor, or one accelerator of a machine. Machines
// are connected by a tree of switches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "artel/comm/collectives/calibration.h"

namespace artel::plan {

// The speed of one class of ops on one core, fitted to measurements (forecast/op_times.h).
struct OpSpeed {
  double flops = 0;             // operations per second; 0: they take no time
  double bandwidth = 0;         // bytes of inputs and outputs per second; 0: they take no time
  double weight_bandwidth = 0;  // bytes of weights and their gradients per second; 0: no time
  double overhead = 0;          // seconds for each kernel

  auto operator<=>(const OpSpeed&) const = default;
};

// The classes of ops that [machine.op] may describe (op_class in kernel_work.h).
const std::vector<std::string>& known_op_classes();

struct MachineKind {
  std::string name = "machine";
  int64_t count = 1;            // machines of this kind
  int64_t devices = 1;          // devices per machine; each runs one worker
  int64_t cores = 1;            // per device
  double flops = 0;             // sustained operations per second of a device, all cores together
  double memory = 0;            // bytes per device
  double memory_bandwidth = 0;  // bytes per second per device
  comm::LinkCost network = {.latency = 50e-6, .bandwidth = 125e6};  // per machine and direction
  comm::LinkCost inside = {.latency = 20e-6, .bandwidth = 2e9};     // between devices of a machine
  std::string at = {};        // name of the machine's switch; empty if the network has only one
  double price = 0;           // per machine and hour; 0 if unknown
  double variation = 0;       // relative standard deviation of speed between machines
  bool shared_cores = false;  // emulated machines that share the cores of one
  std::map<std::string, OpSpeed> ops = {};  // by class; empty to use the fields above
  double fit_error = 0;                     // mean relative error of `ops` on the measurements

  int64_t workers() const { return count * devices; }
};

struct Switch {
  std::string name;
  std::string uplink;  // name of the parent switch; empty for the root
  comm::LinkCost link = {.latency = 1e-6, .bandwidth = 125e6};  // to the uplink
};

struct Machines {
  std::string name;        // file name for messages
  std::string about = {};  // one-line description
  std::vector<MachineKind> kinds = {};
  std::vector<Switch> switches = {};

  int64_t workers() const;
};

// Where an entry of a machine file and its keys stand, e.g. "lab.toml:12".
struct EntryPlace {
  std::string entry;
  std::map<std::string, std::string, std::less<>> keys = {};

  // The place of a key, or of the entry if it has no such key.
  const std::string& of(std::string_view key) const {
    const auto found = keys.find(key);
    return found == keys.end() ? entry : found->second;
  }
};

// By place in `kinds` and `switches`.
struct EntryPlaces {
  std::vector<EntryPlace> kinds, switches;
};

// Throws unless all speeds are positive and the switches form one tree.
void check_machines(const Machines& machines, const EntryPlaces& places);

// The machines used by a plan. A plan treats them as equal, with the slowest speed of all.
struct Pool {
  MachineKind kind;  // the minimum of each property
  int64_t workers = 1;
  int64_t machines = 1;
  comm::LinkCost between;  // between two machines, over all switches on the path
  double price = 0;        // of all machines per hour; 0 if unknown
  bool exists = true;      // false if the machine file has fewer machines

  comm::Calibration links() const { return {kind.inside, between}; }
  int64_t workers_per_machine() const { return std::min(workers, kind.devices); }
};

// Expected largest of `count` independent standard normal numbers, such as the deviation of the
// slowest machine.
double expected_largest(int64_t count);

// Takes machines in file order. If there are too few, adds more of the last kind.
Pool pool_of(const Machines& machines, int64_t workers);

}  // namespace artel::plan
