#include <CLI/CLI.hpp>

#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/observe/plot.h"
#include "artel/observe/table.h"
#include "artel/shrink/shrink_run.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  shrink::ShrinkRunOptions options;
  std::string target, out;
};

std::string quality_text(const shrink::Quality& quality) {
  return quality.accuracy ? fmt::format("{:.4f}", *quality.accuracy)
                          : fmt::format("{:.4f}", quality.loss);
}

void print_table(const std::vector<shrink::Candidate>& all, const shrink::ShrinkTarget& target) {
  const bool classes = all.front().quality.accuracy.has_value();
  observe::Table table(
      {"network", "weights", "smaller", "faster", classes ? "accuracy" : "loss", "lost", "target"});
  for (const shrink::Candidate& each : all)
    table.add({each.name(), format_bytes(static_cast<double>(each.bytes)),
               fmt::format("{:.2f}x", each.smaller), fmt::format("{:.2f}x", each.faster),
               quality_text(each.quality), fmt::format("{:.3f}", each.lost),
               shrink::meets(each, target) ? "met" : ""});
  fmt::print("{}", table.text());
}

// Loss of quality against time and size, relative to the original.
void draw(const std::vector<shrink::Candidate>& all, const fs::path& file) {
  const std::string unit = "lost: " + shrink::lost_unit(all.front().quality);
  observe::Plot time = {
      .title = "time", .x_label = "share of the original's", .y_label = unit, .series = {}};
  observe::Plot size = time;
  size.title = "size";
  for (const int bits : {0, 8, 4}) {
    const std::string name = bits == 0 ? "fp32" : fmt::format("int{}", bits);
    observe::Series by_time = {name, {}, true}, by_size = {name, {}, true};
    for (const shrink::Candidate& each : all) {
      if (each.bits != bits) continue;
      by_time.points.emplace_back(1 / each.faster, each.lost);
      by_size.points.emplace_back(1 / each.smaller, each.lost);
    }
    if (by_time.points.empty()) continue;
    std::ranges::sort(by_time.points);
    std::ranges::sort(by_size.points);
    time.series.push_back(std::move(by_time));
    size.series.push_back(std::move(by_size));
  }
  write_file_atomically(file, observe::to_svg(std::vector{time, size}));
}

void shrink_run(Arguments& arguments) {
  const shrink::ShrinkTarget target = shrink::parse_target(arguments.target);
  arguments.options.after_each = [](const shrink::Candidate& each) {
    log(LogLevel::info, "{}: {:.2f}x smaller, {:.2f}x faster, lost {:.3f} {}", each.name(),
        each.smaller, each.faster, each.lost, shrink::lost_unit(each.quality));
  };
  const std::vector<shrink::Candidate> all =
      shrink::try_combinations(arguments.options, arguments.out);
  print_table(all, target);
  fs::create_directories(arguments.out);
  const fs::path picture = fs::path(arguments.out) / "tradeoff.svg";
  draw(all, picture);
  const shrink::Candidate* const best = shrink::best_of(all, target);
  require(
      best != nullptr, ErrorKind::not_found,
      "no combination meets \"{}\"; the table and {} show what is possible, the networks are in "
      "{}/candidates",
      arguments.target, picture.string(), arguments.out);
  if (best == &all.front()) {
    println("the original already meets the target");
    return;
  }
  println("kept: {}, in {}", best->name(), arguments.out);
  shrink::keep_candidate(*best, arguments.out);
}

}  // namespace

void add_shrink(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  shrink::ShrinkRunOptions& options = arguments->options;
  CLI::App* command = program.add_subcommand(
      "shrink", "Find a smaller network that meets a target of size, speed and quality");
  add_source(command, options.source, options.overrides);
  command
      ->add_option("--target", arguments->target,
                   "Target, such as \"4x smaller, 2x faster, at most 1 point worse\" (or \"1% "
                   "worse\" for language models)")
      ->type_name("TEXT")
      ->required();
  command->add_option("--epochs", options.epochs, "Epochs of fine-tuning for each combination")
      ->type_name("N")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option("--keep", options.keep,
                   "Do not change layers whose names start with NAME; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("-o,--out", arguments->out, "Folder to write")
      ->type_name("FOLDER")
      ->required();
  command->footer(
      "Removes 25, 50, and 75 % of the channels, fine-tunes with the original as the teacher, and\n"
      "stores weights with 32, 8, and 4 bits. Prints and draws all combinations (tradeoff.svg), "
      "and\n"
      "keeps the one that meets the target with the least loss of quality. --set configures the\n"
      "fine-tuning.\n\n"
      "Examples:\n"
      "  artel shrink runs/resnet56 --target \"2x faster, at most 1 point worse\" -o runs/small\n"
      "  artel shrink runs/mlp --target \"4x smaller\" --epochs 5 -o runs/mlp_small\n"
      "  artel shrink runs/mlp --target \"3x smaller\" --set train.optimizer.lr=0.01 -o "
      "runs/small");
  command->callback([arguments] { shrink_run(*arguments); });
}

}  // namespace artel::cli
