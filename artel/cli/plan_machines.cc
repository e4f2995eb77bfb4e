// The machines of a plan: `--on`, `--measure`, and this machine.
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/cli/plan_training.h"
#include "artel/cluster/cluster.h"
#include "artel/data/fetch.h"
#include "artel/observe/table.h"
#include "artel/plan/forecast/measure_machine.h"
#include "artel/plan/forecast/own_machine.h"
#include "artel/plan/machines/machine_file.h"
#include "artel/plan/machines/units.h"
#include "artel/predict/batches.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

plan::ThisMachine this_machine() { return {host_name(), Cluster().cores()}; }

// Networks whose kernels cover the classes of ops, at two sizes of lane each.
struct Probe {
  const char* model;
  const char* input;
  std::vector<std::string> overrides;
  std::vector<int64_t> samples;
};

const std::vector<Probe>& probes() {
  static const std::vector<Probe> all = {
      {"lenet5", "", {}, {4, 32}},
      {"resnet20", "", {}, {2, 32}},
      {"resnet18", "3x32x32", {"model.small_images=true"}, {2, 8}},
      {"resnet50", "3x96x96", {}, {2}},
      {"mobilenet_v2", "3x96x96", {}, {2, 8}},
      {"autoencoder", "", {"model.width=2048"}, {4, 64}},
      {"gpt2",
       "64",
       {"model.width=256", "model.depth=2", "model.heads=4", "model.positions=64",
        "model.vocabulary=2048"},
       {2, 8}},
  };
  return all;
}

std::vector<Graph> probe_graphs() {
  std::vector<Graph> graphs;
  for (const Probe& probe : probes()) {
    const Subject subject = *subject_of_model(probe.model, probe.input, probe.overrides);
    const plan::TrainingTask task = training_task(subject, probe.model, 0, 0, 1);
    for (const int64_t samples : probe.samples) graphs.push_back(task.graph(samples, {}));
  }
  return graphs;
}

}  // namespace

plan::Machines planned_machines(const std::string& on) {
  if (!on.empty()) return plan::machines_by_name(on);
  if (auto machines = plan::own_machine(data::data_folder())) {
    machines->name = "this machine";
    return std::move(*machines);
  }
  return {.name = "this machine",
          .about = "a quick look; artel plan --measure is more exact",
          .kinds = {plan::rough_machine(this_machine())}};
}

void tell_missing_machines(const plan::Machines& machines, int64_t workers) {
  if (plan::pool_of(machines, workers).exists) return;
  println("{} has {}; planning with more machines of its last kind, \"{}\"", machines.name,
          counted(machines.workers(), "worker"), machines.kinds.back().name);
}

void measure_machines(const std::string& file) {
  const std::vector<Graph> graphs = probe_graphs();
  const plan::Machines machines = {
      .name = file,
      .about = fmt::format("{}, measured on {} training steps", host_name(), graphs.size()),
      .kinds = {plan::measured_machine(this_machine(), graphs, {})}};
  const fs::path path = file.empty() ? plan::own_machine_file(data::data_folder()) : fs::path(file);
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  write_file_atomically(path, to_toml(machines));
  const plan::MachineKind& kind = machines.kinds[0];
  println("{}: {}, {} in products, {} of memory at {}; ops fitted within {}", kind.name,
          counted(kind.cores, "core"), plan::format_quantity(kind.flops, plan::Unit::flops),
          plan::format_quantity(kind.memory, plan::Unit::bytes),
          plan::format_quantity(kind.memory_bandwidth, plan::Unit::rate),
          plan::format_quantity(kind.fit_error, plan::Unit::fraction));
  println("written to {}; check network, latency, price and count there", path.string());
}

}  // namespace artel::cli
