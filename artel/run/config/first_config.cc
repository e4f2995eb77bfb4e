#include "artel/run/config/first_config.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/data/images/image_folder.h"
#include "artel/data/sets.h"
#include "artel/run/config/first_sections.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

// An autoencoder of samples of some shape.
std::string reconstructing_network(const Shape& shape) {
  const int64_t size = shape.elements();
  const int64_t width = std::clamp<int64_t>(size / 2, 16, 256),
                code = std::max<int64_t>(2, width / 8);
  std::vector<std::string> extents;
  for (const int64_t extent : shape.extents()) extents.push_back(std::to_string(extent));
  return fmt::format(
      R"(
[model]
# Squeezes each sample into {1} numbers and restores it from them.
layers = ["flatten", "dense {0}", "relu", "dense {1}", "dense {0}", "relu", "dense {2}", "reshape {3}"]
)",
      width, code, size, join(extents, "x"));
}

std::string picture_network(int64_t side, int64_t classes) {
  std::vector<std::string> layers;
  int64_t channels = 32;
  for (int64_t size = side; size >= 8; size /= 2, channels = std::min<int64_t>(256, 2 * channels))
    layers.push_back(
        fmt::format("  \"conv {0} 3x3\", \"batch_norm\", \"relu\", \"conv {0} 3x3\", "
                    "\"batch_norm\", \"relu\", \"max_pool 2\",",
                    channels));
  return fmt::format(
      "\n[model]\nlayers = [\n{}\n  \"adaptive_average_pool 1\", \"flatten\", "
      "\"dropout 0.2\", \"dense {}\"]\n",
      join(layers, "\n"), classes);
}

FirstConfig for_pictures(const fs::path& path, const FirstConfigOptions& options) {
  const data::Split set = data::open_set("folder", {.path = path});
  const bool has_test_part = fs::is_directory(path / "train");
  const data::SampleLayout& layout = set.train->layout();
  constexpr int64_t kLargest = 64;  // image side affordable for training from scratch on few cores
  const int64_t side = std::min(kLargest, std::min(layout.input[1], layout.input[2]));
  const int64_t samples = set.train->size() + (has_test_part ? 0 : set.test->size());
  check_size(path, samples, "picture");
  const Problem problem = {.samples = training_samples(samples, has_test_part ? 0 : kTestShare),
                           .classes = layout.classes};
  FirstConfig first;
  first.findings = {fmt::format("a folder of pictures: {} in {}",
                                counted(set.train->size() + set.test->size(), "picture"),
                                counted(layout.classes, "class")),
                    fmt::format("with few pictures, a published network is better than one trained "
                                "from scratch: artel finetune resnet50_keras --data {}",
                                shell_word(path.string()))};
  first.toml =
      fmt::format(R"([data]
set = "folder"
path = {0}
image_size = {1}  # pictures are scaled to cover this square and cut in the middle
{3}augment = ["flip", "crop {1} {2}", "normalise 0.5 0.5 0.5 0.25 0.25 0.25"]  # remove "flip" if mirrored pictures are wrong
)",
                  path_from(options, path), side, side / 8, held_out(samples, has_test_part)) +
      picture_network(side, outputs_of(problem)) + train_section(problem);
  return first;
}

FirstConfig for_text(const fs::path& path, const FirstConfigOptions& options) {
  const std::string text = read_file(path);
  std::vector<size_t> lengths;
  for (const std::string& line : split(text, '\n'))
    if (!trim(line).empty()) lengths.push_back(line.size());
  require(!lengths.empty(), ErrorKind::corrupt, "[{}] is empty, expected a text", path.string());
  std::sort(lengths.begin(), lengths.end());
  constexpr size_t kShortLine = 40, kManyLines = 500;
  const size_t longest = lengths[lengths.size() * 95 / 100];
  const bool lines = longest <= kShortLine && lengths.size() >= kManyLines;
  const int64_t context = lines ? static_cast<int64_t>(longest) + 1 : 64;
  FirstConfig first;
  first.findings = {
      lines ? fmt::format("{} short lines: each is a sample, such as a name",
                          format_count(std::ssize(lengths)))
            : fmt::format("a text of {} bytes: a small GPT learns to continue it letter by letter",
                          format_count(std::ssize(text)))};
  first.toml = fmt::format(R"([data]
set = "text"
path = {}
context = {}  # letters that the network sees at a time
{}
[model]
name = "gpt2"
depth = 4
heads = 4
width = 128
positions = {}

[train]
batch_size = 16
steps = 2000  # more for a long text
seed = 1
clip_norm = 1
optimizer = {{ name = "adamw", lr = 1e-3, beta2 = 0.99, weight_decay = 0.1 }}
schedule = {{ name = "cosine", final_fraction = 0.1, warmup = 100, unit = "step" }}
)",
                           path_from(options, path), context,
                           lines ? "lines = true  # each line is a sample\n"
                                 : "stride = 1  # samples begin at any letter\n",
                           context);
  return first;
}

// The largest token of a set, or -1 if it holds numbers below 0 or no tokens.
int64_t largest_token(const data::Dataset& set) {
  const data::SampleLayout& layout = set.layout();
  std::vector<int32_t> tokens(static_cast<size_t>(layout.input.elements()));
  std::vector<int64_t> target(layout.target_bytes() / sizeof(int64_t) + 1);
  int64_t largest = -1;
  for (int64_t i = 0; i < set.size(); ++i) {
    set.read(i, std::as_writable_bytes(std::span(tokens)),
             std::as_writable_bytes(std::span(target)).first(layout.target_bytes()));
    if (std::ranges::min(tokens) < 0) return -1;
    largest = std::max<int64_t>(largest, std::ranges::max(tokens));
  }
  return largest;
}

// The first layers for samples that are not pictures.
std::string first_layers(const fs::path& path, const data::Dataset& set) {
  const data::SampleLayout& layout = set.layout();
  if (layout.input_type == DType::f32)
    return layout.input.rank() > 1 ? "\"flatten\", \"batch_norm\", " : "\"batch_norm\", ";
  constexpr int64_t kMostTokens = 100'000;
  const int64_t largest = largest_token(set);
  require(largest >= 0 && largest < kMostTokens, ErrorKind::unsupported,
          "[{}] the inputs are whole numbers, so they count as tokens: got numbers below 0 or up "
          "to {}, expected 0 to {}; save numeric inputs as float32",
          path.string(), largest, kMostTokens - 1);
  return fmt::format("\"embedding {} 16\", \"flatten\", ", largest + 1);
}

FirstConfig for_arrays(const fs::path& path, const std::string& kind,
                       const FirstConfigOptions& options) {
  const data::Split split = data::open_set(kind, {.path = path, .test_fraction = kTestShare});
  const data::SampleLayout& layout = split.train->layout();
  require(layout.parts.empty(), ErrorKind::unsupported,
          "[{}] has several inputs for each sample; docs/models.md shows networks for them",
          path.string());
  const int64_t samples = split.train->size();
  check_size(path, samples, "training sample");
  const bool targets = layout.target_kind != data::TargetKind::none;
  const Problem problem = {.samples = training_samples(samples, 0),
                           .classes = layout.classes,
                           .outputs = targets ? layout.target.elements() : 0,
                           .tested = targets};
  FirstConfig first;
  first.findings = {fmt::format(
      "arrays: {} {}, {}", counted(samples + split.test->size(), "sample"), to_string(layout.input),
      problem.classes > 0 ? counted(problem.classes, "class")
      : targets           ? "values"
                          : "no targets: an autoencoder learns to restore the samples")};
  const bool pictures = layout.input.rank() == 3 && layout.input[1] >= 8 && problem.classes > 0;
  first.toml =
      fmt::format("[data]\nset = \"{}\"\npath = {}\n{}{}", kind, path_from(options, path),
                  targets ? "" : "task = \"reconstruct\"\n", held_out(samples, false)) +
      (!targets   ? reconstructing_network(layout.input)
       : pictures ? picture_network(std::min(layout.input[1], layout.input[2]), outputs_of(problem))
                  : dense_network(problem, first_layers(path, *split.train))) +
      train_section(problem);
  return first;
}

}  // namespace

FirstConfig first_config(const fs::path& path, const FirstConfigOptions& options) {
  require(fs::exists(path), ErrorKind::not_found, "[{}] no such file or folder", path.string());
  std::string extension = path.extension().string();
  if (extension == ".gz") extension = path.stem().extension().string();
  const bool folder = fs::is_directory(path);
  require(options.target.empty() || extension == ".csv" || extension == ".tsv",
          ErrorKind::invalid_argument, "--target: got \"{}\", but only a table has columns",
          options.target);
  if (folder && !data::pictures_in(path).empty()) return for_pictures(path, options);
  if (extension == ".csv" || extension == ".tsv") return first_config_of_table(path, options);
  if (extension == ".txt" || extension == ".md") return for_text(path, options);
  if (extension == ".npz" || extension == ".npy")
    return for_arrays(path, extension.substr(1), options);
  fail(
      ErrorKind::unsupported,
      "[{}] is no kind of data that a first configuration can be made for; expected a table "
      "(.csv, .tsv), a folder of pictures with one folder for each class, a text (.txt), or arrays "
      "(.npz, .npy); docs/data.md has the others",
      path.string());
}

}  // namespace artel
