#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "artel/base/text.h"
#include "artel/run/config/config.h"
#include "artel/run/config/config_keys.h"

namespace artel {
namespace {

// Options hold numbers, flags, and lists in TOML's notation.
bool is_bare(const std::string& option) {
  double number = 0;
  const char* const end = option.data() + option.size();
  const bool is_number = !option.empty() && std::from_chars(option.data(), end, number).ptr == end;
  return is_number || option == "true" || option == "false" || option.starts_with('[');
}

using artel::toml_value;
std::string toml_value(ByteSize value) { return fmt::format("{}", value.bytes); }
std::string toml_value(WorkerCount value) {
  return value.is_range ? fmt::format("\"{}..{}\"", value.least, value.most)
                        : fmt::format("{}", value.most);
}
std::string toml_value(const BatchSize& value) {
  return value.per_worker ? fmt::format("\"{} per worker\"", value.samples)
                          : fmt::format("{}", value.samples);
}
std::string toml_value(const ClassWeights& value) {
  std::vector<std::string> numbers;
  for (const double number : value.numbers) numbers.push_back(toml_value(number));
  return value.balanced ? "\"balanced\"" : fmt::format("[{}]", join(numbers, ", "));
}
std::string toml_value(const optim::Options& value) {
  std::vector<std::string> items;
  for (const auto& [option, text] : value)
    items.push_back(fmt::format("{} = {}", option, is_bare(text) ? text : toml_value(text)));
  std::stable_partition(items.begin(), items.end(),
                        [](const std::string& item) { return item.starts_with("name "); });
  return fmt::format("{{ {} }}", join(items, ", "));
}

// The keys of runs have more types.
class Describe final : public DescribeKeys {
 public:
  using DescribeKeys::operator();
  void operator()(const Key& key, ByteSize& value) { add(key, "size", toml_value(value)); }
  void operator()(const Key& key, WorkerCount& value) {
    add(key, "whole number or range", toml_value(value));
  }
  void operator()(const Key& key, BatchSize& value) {
    add(key, "whole number or text", toml_value(value));
  }
  void operator()(const Key& key, ClassWeights& value) {
    add(key, "text or list of numbers", toml_value(value));
  }
  void operator()(const Key& key, optim::Options& value) {
    add(key, "text or table", toml_value(value));
  }
};

std::string section_of(const KeyDescription& key) { return key.name.substr(0, key.name.find('.')); }

// Section by section; the keys of strategies after the others.
std::vector<KeyDescription> described(RunConfig config) {
  Describe describe;
  visit_keys(config, describe);
  for (KeyDescription& key : describe.keys)
    if (const std::string notes = strategy_notes(key.name); !notes.empty()) key.help += " " + notes;
  std::vector<std::string> sections;
  const auto place = [&](const KeyDescription& key) {
    return std::find(sections.begin(), sections.end(), section_of(key)) - sections.begin();
  };
  for (const KeyDescription& key : describe.keys)
    if (place(key) == std::ssize(sections)) sections.push_back(section_of(key));
  std::stable_sort(describe.keys.begin(), describe.keys.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return std::move(describe.keys);
}

// Calls begin(section) where a new section starts, and each(key without it, description).
void by_section(const std::vector<KeyDescription>& keys, auto&& begin, auto&& each) {
  std::string section;
  for (const KeyDescription& key : keys) {
    if (section_of(key) != section) begin(section = section_of(key));
    each(key.name.substr(section.size() + 1), key);
  }
}

}  // namespace

std::vector<KeyDescription> config_keys(const RunConfig& config) { return described(config); }

std::string to_toml(const RunConfig& config) {
  std::string text;
  by_section(
      described(config),
      [&](const std::string& section) {
        text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
      },
      [&](const std::string& name, const KeyDescription& key) {
        text += fmt::format("{} = {}\n", name, key.default_value);
      });
  return text;
}

std::vector<StrategyDescription> config_strategies() {
  std::vector<StrategyDescription> strategies;
  StrategyOptions defaults;
  for (const StrategyKind* kind : strategy_kinds()) {
    DescribeKeys describe;
    if (kind->visit_keys) kind->visit_keys(defaults, describe);
    strategies.push_back({kind->title, kind->help, kind->names, std::move(describe.keys)});
  }
  return strategies;
}

std::string config_markdown() {
  constexpr const char* kTable = "| key | type | default | meaning |\n|---|---|---|---|\n";
  const auto row = [](const KeyDescription& key) {
    return fmt::format("| `{}` | {} | `{}` | {} |\n", key.name, key.type, key.default_value,
                       key.help);
  };
  std::string text =
      "# Configuration\n\n"
      "A run is described by a TOML file. Every key has a default; on the command line `--set "
      "KEY=VALUE` overrides any\nof them (`--set train.epochs=10 --set train.optimizer.lr=0.05`). "
      "A key that does not exist is an error. The run's folder\nkeeps the complete configuration "
      "in `config.toml`.\n\n"
      "This page is made by `artel config --markdown`; a test compares the two.\n";
  const std::vector<StrategyDescription> strategies = config_strategies();
  const auto of_a_strategy = [&](const KeyDescription& key) {
    return std::any_of(strategies.begin(), strategies.end(), [&](const auto& strategy) {
      return std::any_of(strategy.keys.begin(), strategy.keys.end(),
                         [&](const auto& own) { return own.name == key.name; });
    });
  };
  by_section(
      config_keys(),
      [&](const std::string& section) { text += fmt::format("\n## [{}]\n\n{}", section, kTable); },
      [&](const std::string&, const KeyDescription& key) {
        if (!of_a_strategy(key)) text += row(key);
      });
  text +=
      "\n## Strategies\n\n"
      "The values of `cluster.strategy` ([more](strategies.md)), with the keys that each uses. A "
      "warning names keys without\neffect on the chosen strategy.\n";
  std::set<std::string> printed;  // a key of several strategies has one row
  for (const StrategyDescription& strategy : strategies) {
    text += fmt::format("\n### {}\n\n", strategy.title);
    if (!strategy.names.empty()) text += fmt::format("`{}`. ", join(strategy.names, "`, `"));
    text += strategy.help + "\n";
    std::string rows;
    std::vector<std::string> shared;
    for (const KeyDescription& key : strategy.keys) {
      if (printed.insert(key.name).second)
        rows += row(key);
      else
        shared.push_back(fmt::format("`{}`", key.name));
    }
    if (!rows.empty()) text += fmt::format("\n{}{}", kTable, rows);
    if (!shared.empty()) text += fmt::format("\nAlso uses {} (above).\n", join(shared, ", "));
  }
  text +=
      "\n## Renamed keys\n\n"
      "The old names still work, with a warning.\n\n"
      "| old name | is called | since version |\n|---|---|---|\n";
  for (const RenamedKey& renamed : kRenamedKeys)
    text += fmt::format("| `{}` | `{}` | {} |\n", renamed.old_name, renamed.name, renamed.since);
  return text;
}

}  // namespace artel
