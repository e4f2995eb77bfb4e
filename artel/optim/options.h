// Options as text, from a configuration file or a command line.
//
// A settings struct lists its fields once, in a member `void visit(auto&& field)` that calls
// field("key", member) for each. Reading, writing, and suggestions for misspelled keys are derived
// from it.
//
//   const artel::optim::OptimizerConfig adam =
//       artel::optim::optimizer_from_options({{"name", "adam"}, {"lr", "0.01"}});
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace artel::optim {

// Key to value: {"lr", "0.1"}, {"nesterov", "true"}, {"milestones", "[30, 60]"}.
using Options = std::map<std::string, std::string>;

// A field visitor that assigns the given options. Other fields keep their value.
class OptionReader {
 public:
  // `where` begins each error message, such as "optimizer adam". The options are borrowed.
  OptionReader(std::string where, const Options& options);

  void operator()(std::string_view key, double& value);
  void operator()(std::string_view key, int64_t& value);
  void operator()(std::string_view key, bool& value);
  void operator()(std::string_view key, std::string& value);
  void operator()(std::string_view key, std::vector<double>& value);

  // Throws for the first option without a field and suggests the nearest field.
  void finish() const;

 private:
  const std::string* find(std::string_view key);

  std::string where_;
  const Options& options_;
  std::vector<std::string> known_;
};

// A field visitor that collects every field as text, for OptionReader.
class OptionWriter {
 public:
  explicit OptionWriter(Options& options) : options_(options) {}

  void operator()(std::string_view key, double value);
  void operator()(std::string_view key, int64_t value);
  void operator()(std::string_view key, bool value);
  void operator()(std::string_view key, const std::string& value);
  void operator()(std::string_view key, const std::vector<double>& value);

 private:
  Options& options_;
};

// The index of the option "name" among the names; 0 without that option. Throws for an unknown
// name, with a suggestion.
size_t chosen_name(const std::string& where, const Options& options,
                   const std::vector<std::string>& names);

// Reads every option except "name" into the fields of `settings`.
void read_options(const std::string& where, const Options& options, auto& settings) {
  OptionReader reader(where, options);
  std::string name;
  reader("name", name);
  settings.visit(reader);
  reader.finish();
}

// The inverse: the name and every field as options.
Options write_options(std::string_view name, auto settings) {
  Options options = {{"name", std::string(name)}};
  settings.visit(OptionWriter(options));
  return options;
}

}  // namespace artel::optim
