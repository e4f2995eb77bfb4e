// The work of `artel train`, shared with other commands that train.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "artel/run/run.h"

namespace artel::cli {

struct TrainArguments {
  std::string file;
  RunOptions options;
  MeetingPlace join;
  int folds = 0;
  bool dashboard = false;
};

// Starts the workers that the configuration asks for, trains, and tells how to resume. Throws
// CLI::RuntimeError with the exit code of a run that was stopped or failed.
void train(TrainArguments& arguments);
// The options of `artel train` except FILE.
void add_training(CLI::App* command, const std::shared_ptr<TrainArguments>& arguments);

}  // namespace artel::cli
