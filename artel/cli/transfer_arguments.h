// Arguments of the commands that begin with a base.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "artel/cli/shared_arguments.h"
#include "artel/cluster/cluster.h"
#include "artel/cluster/launcher.h"
#include "artel/transfer/base_network.h"

namespace artel::cli {

inline void add_base(CLI::App* command, transfer::BaseSource& source) {
  command
      ->add_option(
          "BASE", source.name,
          "Trained network to begin with: a run or a checkpoint, a published base by name, "
          "the folder of a published model, or a network of the zoo with --weights")
      ->required();
  command
      ->add_option("--weights", source.weights,
                   "Weights of a network of the zoo, in a file of any known format")
      ->type_name("FILE");
}

// What -n asks for.
inline void add_workers(CLI::App* command, int& workers) {
  command->add_option("-n,--workers", workers, "Number of workers on this machine; the same bits")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
}

// This process among those that the launcher started.
inline Cluster launched_cluster() {
  const std::optional<comm::GroupOptions> place = launched_group();
  return place ? Cluster(*place) : Cluster();
}

}  // namespace artel::cli
