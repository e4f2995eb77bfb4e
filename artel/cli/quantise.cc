#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/observe/table.h"
#include "artel/shrink/quantise_run.h"
#include "artel/shrink/result_folder.h"

namespace artel::cli {
namespace {

struct Arguments {
  shrink::QuantiseRunOptions options;
  std::string bits = "int8", out;
  std::optional<double> max_loss;
  bool no_evaluation = false;
};

std::string size_text(size_t bytes) { return format_bytes(static_cast<double>(bytes)); }

void print_layers(const shrink::QuantisedRun& run) {
  observe::Table table({"weight", "shape", "before", "after", "error", "lost alone"});
  for (const shrink::ShrunkWeight& weight : run.small.matrices) {
    const auto alone =
        std::ranges::find(run.sensitivity, weight.name, &std::pair<std::string, double>::first);
    table.add({weight.name, to_string(weight.shape), size_text(weight.bytes_before),
               weight.left.empty() ? size_text(weight.bytes_after) : "float: " + weight.left,
               weight.left.empty() ? fmt::format("{:.2f} %", 100 * weight.error) : "",
               alone == run.sensitivity.end() ? "" : fmt::format("{:.3f}", alone->second)});
  }
  fmt::print("{}", table.text());
  const size_t before = run.small.bytes_before, after = run.small.bytes_after;
  println("all weights: {} before, {} after, {:.2f} times smaller", size_text(before),
          size_text(after),
          static_cast<double>(before) / static_cast<double>(std::max<size_t>(1, after)));
  if (!run.chosen_by.empty())
    println("float layers were chosen by the loss of quality on {}", run.chosen_by);
}

void quantise_run(Arguments& arguments) {
  shrink::QuantiseRunOptions& options = arguments.options;
  options.form.bits = arguments.bits == "int8" ? 8 : 4;
  options.max_loss = arguments.max_loss;
  options.evaluate = !arguments.no_evaluation;
  if (!arguments.out.empty()) shrink::check_result(options.source.path, arguments.out);
  const shrink::QuantisedRun run = shrink::quantise_run(options);
  print_layers(run);
  if (run.before.samples > 0)
    println("before: {}\nafter:  {}\nlost:   {:.3f} {}", to_string(run.before),
            to_string(run.after), shrink::lost(run.before, run.after),
            shrink::lost_unit(run.before));
  if (arguments.out.empty()) return;
  shrink::save_quantised(run, options.source, arguments.out);
  println("{} is in {}", options.source.path, arguments.out);
}

}  // namespace

void add_quantise(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  shrink::QuantiseRunOptions& options = arguments->options;
  CLI::App* command = program.add_subcommand(
      "quantise", "Store the weights of a trained network with 8 or 4 bits each");
  add_source(command, options.source);
  command->add_option("--weights", arguments->bits, "Bits per weight: int8 or int4")
      ->type_name("BITS")
      ->check(CLI::IsMember({"int8", "int4"}))
      ->capture_default_str();
  command
      ->add_option(
          "--group", options.form.group,
          "Weights that share a scale, a multiple of 32; 0: a whole row with int8, 32 with "
          "int4")
      ->type_name("N")
      ->check(at_least(0))
      ->capture_default_str();
  command
      ->add_option("--keep-float", options.keep_float,
                   "Do not quantise weights whose names start with NAME; may be repeated")
      ->type_name("NAME");
  command
      ->add_option(
          "--max-loss", arguments->max_loss,
          "Keep the most sensitive layers float until at most this much is lost: points of "
          "accuracy, or per cent of perplexity or loss")
      ->type_name("X")
      ->check(at_least(0));
  command->add_flag("--no-evaluation", arguments->no_evaluation,
                    "Do not evaluate the network on the test data before and after");
  command->add_option("-o,--out", arguments->out, "Folder to write (default: only measure)")
      ->type_name("FOLDER");
  command->footer(
      "The result is a run that evaluate, predict, and generate open. They compute with the\n"
      "quantised weights directly, and so does the evaluation after quantising.\n\n"
      "Examples:\n"
      "  artel quantise runs/char_gpt -o runs/char_gpt_int8\n"
      "  artel quantise runs/char_gpt --weights int4 --max-loss 1 -o runs/char_gpt_int4\n"
      "  artel quantise runs/mnist --keep-float 4. --weights int4");
  command->callback([arguments] { quantise_run(*arguments); });
}

}  // namespace artel::cli
