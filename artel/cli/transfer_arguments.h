// Arguments of the commands that begin with a base.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "artel/cli/launched.h"
#include "artel/cli/shared_arguments.h"
#include "artel/transfer/base_network.h"

namespace artel::cli {

inline void add_base(CLI::App* command, transfer::BaseSource& source) {
  command
      ->add_option(
          "BASE", source.name,
          "Trained network to start from: a run or a checkpoint, a published base by name, "
          "the folder of a published model, or a network of the zoo with --weights")
      ->required();
  command
      ->add_option("--weights", source.weights,
                   "Weights of a network of the zoo, in a file of any known format")
      ->type_name("FILE");
}

}  // namespace artel::cli
