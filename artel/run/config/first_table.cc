// First configurations for tables.
#include <algorithm>
#include <set>

#include "artel/base/error.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/data/tables/table_report.h"
#include "artel/data/text/labelled_text.h"
#include "artel/run/config/first_sections.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

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

// The mean number of words in the fields of a column.
double words_in(const data::Column& column) {
  double words = 0, fields = 0;
  for (const int32_t code : column.codes) {
    if (code < 0) continue;
    fields += 1;
    for (const std::string& word : split(column.categories[code], ' '))
      if (!word.empty()) words += 1;
  }
  return fields > 0 ? words / fields : 0;
}

// A table with its target, and the use of its other columns.
struct Columns {
  data::Table table;
  bool decimal_comma = false;
  std::string target;
  bool values = false;                // the target has whole numbers that are not classes
  std::vector<int64_t> rows;          // with a target
  std::vector<std::string> ignored;   // nothing to learn from, or too many names
  std::vector<std::string> features;  // all others
  std::string text;                   // the ignored column with the longest texts; "" if none
  double words = 0;                   // mean number of words in these texts
  std::vector<std::string> findings;
};

// Reads numbers with decimal commas if a column has them.
void read_table(const fs::path& path, Columns& columns) {
  columns.table = data::read_csv(path, {});
  columns.decimal_comma = data::has_decimal_commas(columns.table);
  if (columns.decimal_comma) columns.table = data::read_csv(path, {.decimal_comma = true});
  require(columns.table.rows > 0 && columns.table.columns.size() > 1, ErrorKind::corrupt,
          "[{}] got {} and {}, expected rows and at least two columns", path.string(),
          counted(columns.table.rows, "row"), counted(std::ssize(columns.table.columns), "column"));
}

// Whole numbers count as classes if each occurs several times.
bool are_values(const data::Column& target, const std::vector<int64_t>& rows) {
  if (target.categorical) return false;
  constexpr int64_t kOfEach = 3;
  std::set<double> kinds;
  for (const int64_t row : rows) kinds.insert(target.numbers[row]);
  return kOfEach * std::ssize(kinds) > std::ssize(rows) || !data::are_classes(target, rows);
}

Columns columns_of(const fs::path& path, const FirstConfigOptions& options) {
  Columns columns;
  read_table(path, columns);
  const data::Table& table = columns.table;
  columns.target = options.target;
  if (columns.target.empty())
    columns.target = choose_target(table, data::describe_columns(table, {}));
  const data::Column& target = data::find_column(table, columns.target);
  for (int64_t row = 0; row < table.rows; ++row)
    if (!data::is_missing(target, row)) columns.rows.push_back(row);
  check_size(path, std::ssize(columns.rows), "row");
  columns.values = are_values(target, columns.rows);
  for (const data::ColumnReport& report :
       data::describe_columns(table, {.target = columns.target})) {
    if (report.use == "target") continue;
    if (!report.warning.empty())
      columns.findings.push_back(fmt::format("column '{}': {}", report.name, report.warning));
    const bool useless = report.warning.find("data.ignore") != std::string::npos ||
                         report.warning.find("nothing to learn") != std::string::npos;
    (useless ? columns.ignored : columns.features).push_back(report.name);
    const data::Column& column = data::find_column(table, report.name);
    if (!useless || !column.categorical || words_in(column) <= columns.words) continue;
    columns.text = report.name;
    columns.words = words_in(column);
  }
  return columns;
}

FirstConfig for_texts(const fs::path& path, const FirstConfigOptions& options, Columns columns) {
  std::vector<std::string> ignored;
  for (const data::Column& column : columns.table.columns)
    if (column.name != columns.target && column.name != columns.text)
      ignored.push_back(column.name);
  const data::LabelledTexts texts = data::labelled_texts(columns.table, columns.target, ignored);
  const int64_t classes = std::ssize(texts.class_names) > 0
                              ? std::ssize(texts.class_names)
                              : int64_t{*std::ranges::max_element(texts.labels)} + 1;
  std::vector<int64_t> lengths;
  int64_t bytes = 0;
  for (const std::string& text : texts.texts) {
    lengths.push_back(std::ssize(text));
    bytes += lengths.back();
  }
  std::ranges::sort(lengths);
  constexpr int64_t kBytesOfToken = 4, kBytesForToken = 50, kStep = 16;
  const int64_t longest = lengths[lengths.size() * 95 / 100] / kBytesOfToken;
  const int64_t context = std::clamp<int64_t>((longest / kStep + 1) * kStep, 32, 512);
  const int64_t tokens = std::clamp<int64_t>(bytes / kBytesForToken / 500 * 500, 1000, 8000);
  const int64_t samples = std::ssize(texts.texts);
  FirstConfig first;
  first.findings = {fmt::format("texts: {} in column '{}'; '{}' is learned as {}",
                                counted(samples, "text"), columns.text, columns.target,
                                counted(classes, "class"))};
  if (!ignored.empty())
    first.findings.push_back(
        fmt::format("left out: {}; a network for texts reads only the texts", list_of(ignored)));
  first.findings.push_back(fmt::format(
      "with few texts, a published network is better than one trained from scratch: artel finetune "
      "minilm --data {}",
      shell_word(path.string())));
  first.toml =
      fmt::format(R"([data]
set = "labelled_text"
path = {}
target = {}  # the column with the classes
ignore = {}  # all other columns but the text
tokenizer = "wordpiece {}"  # pieces of words, learned from the training texts
context = {}  # tokens; longer texts are cut
{})",
                  path_from(options, path), in_quotes(columns.target), list_of(ignored), tokens,
                  context, held_out(samples, false)) +
      fmt::format(R"(
[model]
# The mean of the vectors of a text's tokens. If the order of words matters, try
# ["embedding {0} 64", "lstm 64 bidirectional last mask x", "dropout 0.3", "dense {1}"].
layers = ["embedding_bag {0} 64 ignore_padding", "dropout 0.3", "dense {1}"]
)",
                  tokens, std::max<int64_t>(2, classes)) +
      train_section({.samples = training_samples(samples, kTestShare), .classes = classes});
  return first;
}

// True if a column of texts predicts the classes better than the other columns do.
bool are_texts(const Columns& columns) {
  constexpr double kWordsOfText = 8;
  constexpr size_t kFewOthers = 2;
  return !columns.text.empty() && !columns.values &&
         (columns.features.empty() ||
          (columns.words >= kWordsOfText && columns.features.size() <= kFewOthers));
}

// Learns from columns of numbers that look like ids, such as the sorted x of points x, y. Call if
// no other column is left.
void keep_numbers(Columns& columns) {
  std::vector<std::string> ignored;
  for (const std::string& name : columns.ignored) {
    const data::Column& column = data::find_column(columns.table, name);
    const bool varies = std::ranges::any_of(
        column.numbers, [&](double number) { return number != column.numbers[0]; });
    (column.categorical || !varies ? ignored : columns.features).push_back(name);
  }
  columns.ignored = std::move(ignored);
}

}  // namespace

FirstConfig first_config_of_table(const fs::path& path, const FirstConfigOptions& options) {
  Columns columns = columns_of(path, options);
  if (are_texts(columns)) return for_texts(path, options, std::move(columns));
  if (columns.features.empty()) keep_numbers(columns);
  require(!columns.features.empty(), ErrorKind::invalid_argument,
          "[{}] no column helps to predict '{}' in new rows: {}; name another target with "
          "--target",
          path.string(), columns.target, join(columns.findings, "; "));
  const data::TableEncoder encoder(
      columns.table, columns.rows,
      {.target = columns.target,
       .task = columns.values ? data::Task::values : data::Task::automatic,
       .ignore = columns.ignored});
  const int64_t samples = std::ssize(columns.rows);
  const Problem problem = {.samples = training_samples(samples, kTestShare),
                           .classes = std::ssize(encoder.class_names())};
  FirstConfig first;
  first.findings = std::move(columns.findings);
  if (columns.decimal_comma)
    first.findings.insert(first.findings.begin(), "numbers have decimal commas");
  first.findings.insert(
      first.findings.begin(),
      fmt::format("a table: {}, {}; '{}' is learned as {}", counted(columns.table.rows, "row"),
                  counted(std::ssize(columns.table.columns), "column"), columns.target,
                  problem.classes > 0 ? counted(problem.classes, "class") : "a number"));
  first.toml = fmt::format(R"([data]
set = "csv"
path = {}
target = {}  # the column to predict
task = "{}"  # the target: classes, or values to estimate
{}ignore = {}  # columns that do not help to predict new rows, such as ids
{})",
                           path_from(options, path), in_quotes(columns.target),
                           problem.classes > 0 ? "classes" : "values",
                           columns.decimal_comma ? "decimal_comma = true  # 1,5 is a number\n" : "",
                           list_of(columns.ignored), held_out(samples, false)) +
               dense_network(problem, "") + train_section(problem);
  return first;
}

}  // namespace artel
