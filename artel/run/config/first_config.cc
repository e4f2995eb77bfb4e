#include "artel/run/config/first_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/data/images/image.h"
#include "artel/data/images/image_folder.h"
#include "artel/data/sets.h"
#include "artel/data/tables/table_report.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

// The properties of the data that determine the settings.
struct Problem {
  int64_t samples = 0;
  int64_t classes = 0;  // 0: values
};

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) all.push_back(in_quotes(name));
  return fmt::format("[{}]", join(all, ", "));
}

std::string path_from(const FirstConfigOptions& options, const fs::path& data) {
  return in_quotes(fs::proximate(data, options.folder).string());
}

// The number of epochs that makes a few thousand steps. Early stopping usually ends training
// sooner.
int64_t epochs_for(int64_t samples, int64_t batch) {
  constexpr int64_t kSteps = 6000;
  return std::clamp<int64_t>(kSteps * batch / std::max<int64_t>(1, samples), 10, 200);
}

int64_t batch_for(int64_t samples) { return samples < 5000 ? 32 : samples < 100'000 ? 64 : 256; }

std::string train_section(const Problem& problem) {
  const int64_t batch = batch_for(problem.samples);
  const bool classes = problem.classes > 0;
  return fmt::format(
      R"(
[train]
batch_size = {}  # samples per step, over all workers
epochs = {}  # at most; patience stops earlier
patience = 10  # epochs without a better {}
loss = "{}"
metrics = {}
best_by = "loss"  # which checkpoint is the best: this, or one of the metrics
optimizer = "adam lr=0.002"  # the first thing to vary: 0.0005 to 0.01
schedule = "cosine"  # lowers the learning rate to the end
seed = 1
)",
      batch, epochs_for(problem.samples, batch), "loss on the validation part",
      classes ? "cross_entropy" : "mse",
      classes ? R"(["accuracy"])" : R"(["mean absolute error", "r2"])");
}

std::string dense_network(const Problem& problem, bool flatten) {
  const int width = problem.samples < 2000 ? 64 : problem.samples < 50'000 ? 128 : 256;
  return fmt::format(
      R"(
[model]
# Two hidden layers; try more or wider ones if training and validation loss are both high, and
# "dropout 0.2" after each relu if only the validation loss is.
layers = [{}"dense {}", "relu", "dense {}", "relu", "dense {}"]
)",
      flatten ? "\"flatten\", " : "", width, width,
      problem.classes > 0 ? std::max<int64_t>(2, problem.classes) : 1);
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

// The column to learn if the user names none: the last one that is neither an id nor free text.
std::string choose_target(const data::Table& table,
                          const std::vector<data::ColumnReport>& reports) {
  for (size_t i = table.columns.size(); i-- > 0;) {
    const data::Column& column = table.columns[i];
    const auto present = table.rows - reports[i].missing;
    const bool too_many = column.categorical && 3 * std::ssize(column.categories) > present;
    const bool constant = reports[i].warning.find("constant") != std::string::npos ||
                          reports[i].warning.find("empty") != std::string::npos;
    if (!too_many && !constant) return column.name;
  }
  return table.columns.back().name;
}

FirstConfig for_table(const fs::path& path, const FirstConfigOptions& options) {
  const data::Table table = data::read_csv(path, {});
  require(table.rows > 0 && table.columns.size() > 1, ErrorKind::corrupt,
          "[{}] got {} and {}, expected rows and at least two columns", path.string(),
          counted(table.rows, "row"), counted(std::ssize(table.columns), "column"));
  std::string target = options.target;
  if (target.empty()) target = choose_target(table, data::describe_columns(table, {}));
  FirstConfig first;
  std::vector<std::string> ignored;
  for (const data::ColumnReport& column :
       data::describe_columns(table, {.target = data::find_column(table, target).name})) {
    if (column.use == "target" || column.warning.empty()) continue;
    first.findings.push_back(fmt::format("column '{}': {}", column.name, column.warning));
    const bool useless = column.warning.find("data.ignore") != std::string::npos ||
                         column.warning.find("nothing to learn") != std::string::npos;
    if (useless) ignored.push_back(column.name);
  }
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < table.rows; ++row)
    if (!data::is_missing(data::find_column(table, target), row)) rows.push_back(row);
  const data::TableEncoder encoder(table, rows, {.target = target, .ignore = ignored});
  const Problem problem = {std::ssize(rows), std::ssize(encoder.class_names())};
  first.findings.insert(
      first.findings.begin(),
      fmt::format("a table: {}, {}; '{}' is learnt as {}", counted(table.rows, "row"),
                  counted(std::ssize(table.columns), "column"), target,
                  problem.classes > 0 ? counted(problem.classes, "class") : "a number"));
  first.toml = fmt::format(R"([data]
set = "csv"
path = {}
target = {}  # the column to predict
ignore = {}  # columns that say nothing about new rows, such as ids
validation = 0.1  # share of the training rows that judges each epoch
test_fraction = 0.2  # share of all rows that is left for the end
)",
                           path_from(options, path), in_quotes(target), list_of(ignored)) +
               dense_network(problem, false) + train_section(problem);
  return first;
}

FirstConfig for_pictures(const fs::path& path, const FirstConfigOptions& options) {
  const data::DatasetPtr set = data::image_folder(path);
  const data::SampleLayout& layout = set->layout();
  constexpr int64_t kLargest = 64;  // image side affordable for training from scratch on few cores
  const int64_t side = std::min(kLargest, std::min(layout.input[1], layout.input[2]));
  FirstConfig first;
  first.findings = {fmt::format("a folder of pictures: {} in {}", counted(set->size(), "picture"),
                                counted(layout.classes, "class")),
                    fmt::format("with few pictures, a published network is better than one trained "
                                "from nothing: artel finetune resnet50_keras --data {}",
                                shell_word(path.string()))};
  first.toml = fmt::format(R"([data]
set = "folder"
path = {0}
image_size = {1}  # pictures are scaled to cover this square and cut in the middle
validation = 0.1
test_fraction = 0.2
augment = ["flip", "crop {1} {2}", "normalise 0.5 0.5 0.5 0.25 0.25 0.25"]  # "flip" only if left and right do not matter
)",
                           path_from(options, path), side, side / 8) +
               picture_network(side, layout.classes) + train_section({set->size(), layout.classes});
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

FirstConfig for_arrays(const fs::path& path, const std::string& kind,
                       const FirstConfigOptions& options) {
  const data::Split split = data::open_set(kind, {.path = path});
  const data::SampleLayout& layout = split.train->layout();
  const Problem problem = {split.train->size(), layout.classes};
  FirstConfig first;
  first.findings = {
      fmt::format("arrays: {} {}, {}", counted(problem.samples, "sample"), to_string(layout.input),
                  problem.classes > 0 ? counted(problem.classes, "class") : std::string("values"))};
  const bool pictures = layout.input.rank() == 3 && layout.input[1] >= 8 && problem.classes > 0;
  first.toml =
      fmt::format("[data]\nset = \"{}\"\npath = {}\nvalidation = 0.1\n", kind,
                  path_from(options, path)) +
      (pictures ? picture_network(std::min(layout.input[1], layout.input[2]), problem.classes)
                : dense_network(problem, layout.input.rank() > 1)) +
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
  if (extension == ".csv" || extension == ".tsv") return for_table(path, options);
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
