#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/ranges.h>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/run/samples.h"
#include "artel/run/saved_run.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string source, config;
  std::vector<std::string> files, texts, seconds, overrides;
  int64_t top = 3;
};

std::vector<double> softmax(std::span<const float> scores) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> shares;
  for (const float score : scores) shares.push_back(std::exp(static_cast<double>(score) - largest));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

// "Sneaker 0.9312, Sandal 0.0541, Bag 0.0102".
std::string most_likely(std::span<const float> scores, const data::SampleLayout& layout,
                        int64_t top) {
  const std::vector<double> shares = softmax(scores);
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shares[a] > shares[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(top)));
  std::vector<std::string> parts;
  for (const size_t i : order)
    parts.push_back(
        fmt::format("{} {:.4f}", class_name(layout, static_cast<int64_t>(i)), shares[i]));
  return join(parts, ", ");
}

void show(const std::string& source, const Tensor& output, const data::SampleLayout& layout,
          int64_t top) {
  const int64_t rows = output.shape()[0], columns = output.elements() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const auto scores = output.values<float>().subspan(row * columns, columns);
    const std::string name = rows == 1 ? source : fmt::format("{}[{}]", source, row);
    println("{}: {}", name,
            layout.classes > 0 ? most_likely(scores, layout, top)
                               : fmt::format("{:.6g}", fmt::join(scores, " ")));
  }
}

void predict(const Arguments& arguments) {
  require(!arguments.files.empty() || !arguments.texts.empty(), ErrorKind::invalid_argument,
          "predict: got nothing to look at, expected files or --text");
  require(arguments.seconds.empty() || arguments.seconds.size() == arguments.texts.size(),
          ErrorKind::invalid_argument, "--second: got {}, expected as many as --text, {}",
          arguments.seconds.size(), arguments.texts.size());
  const SavedRun run = open_run(arguments.source, arguments.config, arguments.overrides);
  for (const std::string& file : arguments.files)
    show(file, run.trainer->predict(read_samples(file, run.layout, run.augment)), run.layout,
         arguments.top);
  for (size_t i = 0; i < arguments.texts.size(); ++i) {
    const std::string& text = arguments.texts[i];
    std::optional<std::string> second;
    if (!arguments.seconds.empty()) second = arguments.seconds[i];
    show(second ? text + " | " + *second : text,
         run.trainer->predict(text_sample(text, second, run.layout)), run.layout, arguments.top);
  }
}

}  // namespace

void add_predict(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("predict", "What a trained network says of new data");
  command->add_option("SOURCE", arguments->source, "Run, checkpoint or weight file")->required();
  command->add_option("FILE", arguments->files, "Pictures (JPEG, PNG) or arrays (NPY)");
  command
      ->add_option("--text", arguments->texts,
                   "A text, for networks that classify texts; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_option("--second", arguments->seconds, "For pairs: what goes with each --text")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      ->add_option("--config", arguments->config,
                   "Configuration that tells model and data, for a weight file")
      ->type_name("FILE");
  command->add_option("--top", arguments->top, "Classes to show")
      ->type_name("N")
      ->check(at_least(1))
      ->capture_default_str();
  add_overrides(command, arguments->overrides);
  command->footer(
      "Examples:\n"
      "  artel predict runs/fashion_mnist shoe.png\n"
      "  artel predict runs/fashion_mnist images.npy --top 1\n"
      "  artel predict runs/bert_classify --text \"Claim your free prize now\"");
  command->callback([arguments] { predict(*arguments); });
}

}  // namespace artel::cli
