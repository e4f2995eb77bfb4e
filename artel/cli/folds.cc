#include "artel/cli/folds.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/cluster/launch.h"
#include "artel/observe/table.h"
#include "artel/run/folder/run_folder.h"

namespace artel::cli {
namespace {

constexpr std::string_view kPart = "validation_";

// The numbers that the held-out part gave.
std::map<std::string, double> values_of(const nlohmann::json& summary) {
  std::map<std::string, double> values;
  for (const auto& [key, value] : summary.items())
    if (key.starts_with(kPart) && value.is_number()) values[key.substr(kPart.size())] = value;
  if (summary.contains("validation_metrics"))
    for (const auto& [key, value] : summary["validation_metrics"].items())
      if (value.is_number()) values[key] = value;
  return values;
}

std::string mean_and_deviation(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return fmt::format("{:.4f} +- {:.4f}", mean,
                     std::sqrt(squares / static_cast<double>(values.size() - 1)));
}

}  // namespace

void cross_validate(const std::string& file, int folds, const RunOptions& options) {
  std::string out = options.out;
  if (out.empty())
    out = choose_folder({.config = file, .out = "", .name = options.name, .resume = options.resume})
              .path()
              .string() +
          "-folds";
  std::vector<std::map<std::string, double>> results;
  for (int fold = 0; fold < folds; ++fold) {
    const RunFolder folder(std::filesystem::path(out) / fmt::format("fold-{}", fold));
    WorkerCommand command{
        .name = fmt::format("fold {}", fold),
        .arguments = own_command_with({"train", file, "--out", folder.path().string()})};
    if (options.resume && folder.used()) command.arguments.emplace_back("--resume");
    std::vector<std::string> settings = options.overrides;
    settings.push_back(fmt::format("data.folds={}", folds));
    settings.push_back(fmt::format("data.fold={}", fold));
    for (const std::string& setting : settings) {
      command.arguments.emplace_back("--set");
      command.arguments.push_back(setting);
    }
    log(LogLevel::info, "fold {} of {}", fold, folds);
    if (const int code = supervise({command}); code != 0) throw CLI::RuntimeError(code);
    results.push_back(
        values_of(parse_json(read_file(folder.summary()), folder.summary().string())));
  }
  std::vector<std::string> headers = {"fold"};
  for (const auto& [name, value] : results.front()) headers.push_back(name);
  observe::Table table(headers);
  std::vector<std::string> last = {"all"};
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<std::string> cells = {std::to_string(fold)};
    for (const auto& [name, value] : results[static_cast<size_t>(fold)])
      cells.push_back(fmt::format("{:.4f}", value));
    table.add(std::move(cells));
  }
  for (const auto& [name, value] : results.front()) {
    std::vector<double> values;
    for (const auto& result : results)
      if (result.contains(name)) values.push_back(result.at(name));
    last.push_back(mean_and_deviation(values));
  }
  table.add(std::move(last));
  fmt::print("{}", table.text());
}

}  // namespace artel::cli
