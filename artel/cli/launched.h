// Commands other than `train` that several workers of this machine can run together.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <optional>

#include "artel/cli/workers.h"
#include "artel/cluster/cluster.h"
#include "artel/cluster/launcher.h"

namespace artel::cli {

// Adds the option -n.
inline void add_workers(CLI::App* command, int& workers) {
  command->add_option("-n,--workers", workers, "Number of workers on this machine; the same bits")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
}

// The cluster of this process and the others started by the launcher.
inline Cluster launched_cluster() {
  const std::optional<comm::GroupOptions> place = launched_group();
  return place ? Cluster(*place) : Cluster();
}

// Runs the body on `workers` workers of this machine, or on those started by a launcher.
inline void on_workers(int workers,
                       const std::function<void(const std::shared_ptr<Cluster>&)>& body) {
  if (workers > 1 && !launched_group()) {
    if (const int code = launch_here({.workers = workers}); code != 0)
      throw CLI::RuntimeError(code);
    return;
  }
  const std::shared_ptr<Cluster> cluster(new Cluster(launched_cluster()));
  cluster->attempt([&] { body(cluster); });
}

}  // namespace artel::cli
