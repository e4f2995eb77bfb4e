#include <CLI/CLI.hpp>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/checkpoint/compare.h"
#include "artel/cli/commands.h"
#include "artel/train/loop/saved_state.h"

namespace artel::cli {
namespace {

constexpr int kDifferent = 1, kUnreadable = 2;

struct Arguments {
  std::string first, second;
};

void verify(const Arguments& arguments) {
  std::optional<checkpoint::Difference> difference;
  try {
    difference = checkpoint::compare_checkpoints(arguments.first, arguments.second);
  } catch (const Error& error) {
    // "Different" and "cannot tell" must not look alike to a script.
    tell(stderr, fmt::format("artel: error: {}\n", printable(error.what())));
    throw CLI::RuntimeError(kUnreadable);
  }
  if (!difference) {
    println("identical");
    return;
  }
  println("different: {}", printable_line(difference->describe()));
  const std::optional<int> first = lanes_in_state(difference->first_state);
  const std::optional<int> second = lanes_in_state(difference->second_state);
  if (first && second && first != second)
    println(
        "the runs have {} and {} lanes, so their sums were rounded differently; repeat one of them "
        "with cluster.lanes = {}, or from the config.toml of the other",
        *first, *second, *first);
  const std::optional<int> first_numerics = numerics_in_state(difference->first_state);
  const std::optional<int> second_numerics = numerics_in_state(difference->second_state);
  if (first_numerics && second_numerics && first_numerics != second_numerics)
    println("the runs were computed with numerics {} and {}, whose kernels may round differently",
            *first_numerics, *second_numerics);
  throw CLI::RuntimeError(kDifferent);
}

}  // namespace

void add_verify(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("verify", "Compare the weights of two runs bit for bit");
  command->add_option("FIRST", arguments->first, "Run, checkpoint or weight file")->required();
  command->add_option("SECOND", arguments->second, "What to compare it with")->required();
  command->footer(
      "The newest checkpoints of the runs are compared. Says \"identical\" and exits with 0, or\n"
      "names the first tensor, index and both values that differ and exits with 1; with 2 if\n"
      "something cannot be read. Says so if the runs have different numbers of lanes.\n\n"
      "Examples:\n"
      "  artel verify runs/mnist runs/mnist-2\n"
      "  artel verify weights.pt model.safetensors");
  command->callback([arguments] { verify(*arguments); });
}

}  // namespace artel::cli
