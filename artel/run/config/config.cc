#include "artel/run/config/config.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/registry.h"
#include "artel/base/synonyms.h"
#include "artel/base/text.h"
#include "artel/base/toml_text.h"
#include "artel/optim/config.h"
#include "artel/optim/schedule.h"
#include "artel/run/config/config_entry.h"
#include "artel/run/config/config_keys.h"
#include "artel/run/config/config_paths.h"

namespace artel {
namespace {

constexpr uint64_t kMostFileBytes = 1 << 20;

// The key that a misplaced or foreign name means: 'train.lr' is 'train.optimizer.lr'. Empty if
// unknown.
std::string key_meant_by(const std::string& name, std::vector<std::string> keys) {
  for (const char* option : {"lr", "momentum", "weight_decay", "clip_norm"})
    keys.push_back(std::string("train.optimizer.") + option);
  const auto last_word = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  const std::string word = last_word(name);
  std::vector<std::string> words = synonyms_of(word);
  words.insert(words.begin(), word);
  for (const std::string& wanted : words)
    for (const std::string& key : keys)
      if (last_word(key) == wanted) return key;
  return "";
}

[[noreturn]] void refuse_unknown(const std::string& where, const std::string& name) {
  std::vector<std::string> names;
  for (const KeyDescription& key : config_keys()) names.push_back(key.name);
  const std::string meant = key_meant_by(name, names);
  fail(ErrorKind::invalid_argument, "[{}] unknown key '{}'{}", where, name,
       meant.empty() ? did_you_mean(name, names) : fmt::format("; did you mean '{}'?", meant));
}

// The sections that keys are in.
std::vector<std::string> sections() {
  std::vector<std::string> names;
  for (const KeyDescription& key : config_keys())
    if (const std::string name = key.name.substr(0, key.name.find('.'));
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

std::vector<ConfigEntry> file_entries(const toml::table& table, std::string_view name) {
  const auto where = [&](const toml::node& node) {
    return fmt::format("{}:{}", name, node.source().begin.line);
  };
  const std::vector<std::string> known = sections();
  std::vector<ConfigEntry> entries;
  for (const auto& [section, content] : table) {
    const std::string prefix(section.str());
    if (std::find(known.begin(), known.end(), prefix) == known.end()) {
      // The section's own line is unknown to the parser if it is implied by [a.b]: use the key's.
      const std::string line = fmt::format("{}:{}", name, section.source().begin.line);
      require(!content.is_table(), ErrorKind::invalid_argument, "[{}] unknown section '{}'{}", line,
              prefix, did_you_mean(prefix, known));
      refuse_unknown(line, prefix);
    }
    const toml::table* keys = content.as_table();
    require(keys, ErrorKind::invalid_argument, "[{}] {}: got {}, expected a section [{}]",
            where(content), prefix, shown(content), prefix);
    for (const auto& [key, value] : *keys)
      entries.push_back({fmt::format("{}.{}", prefix, key.str()), &value,
                         fmt::format("{}:{}", name, key.source().begin.line), ""});
  }
  return entries;
}

// `value` keeps the parsed value alive.
ConfigEntry override_entry(const std::string& text, toml::table& value) {
  const size_t equals = text.find('=');
  require(equals != text.npos, ErrorKind::invalid_argument,
          "[--set {}] got no '=', expected KEY=VALUE such as train.epochs=10", text);
  const std::string typed(trim(std::string_view(text).substr(equals + 1)));
  try {
    value = parse_toml(fmt::format("value = {}", typed), "--set");
  } catch (const Error&) {
    value.clear();
  }
  if (value.size() != 1) {  // not a value of TOML: plain text
    value.clear();
    value.insert("value", typed);
  }
  return {std::string(trim(text.substr(0, equals))), value.get("value"),
          fmt::format("--set {}", text), typed};
}

// The last assignment of a key, or of one that begins so, for messages.
std::string place_of(const std::vector<ConfigEntry>& entries, std::string_view key) {
  std::string where;
  for (const ConfigEntry& entry : entries)
    if (entry.key.starts_with(key)) where = fmt::format("[{}] ", entry.where);
  return where;
}

// Fills in the defaults of the options; an error gets the place of the key's last assignment.
optim::Options complete(const optim::Options& options, auto&& from_options,
                        const std::vector<ConfigEntry>& entries, std::string_view key) {
  try {
    return to_options(from_options(options));
  } catch (const Error& error) {
    fail(error.kind(), "{}{}", place_of(entries, key), error.what());
  }
}

// Gives each entry the present name of its key. Returns a warning for each renamed one.
std::vector<std::string> use_present_names(std::vector<ConfigEntry>& entries) {
  std::vector<std::string> warnings;
  for (const RenamedKey& renamed : kRenamedKeys)
    for (ConfigEntry& entry : entries) {
      if (entry.key != renamed.old_name) continue;
      // The order of keys within a file must not matter.
      for (const ConfigEntry& other : entries)
        if (other.key == renamed.name && other.text.empty() && entry.text.empty())
          refuse(entry, fmt::format("got this and {}, its new name, expected one of them; try "
                                    "without the old one",
                                    renamed.name));
      entry.key = renamed.name;
      warnings.push_back(
          fmt::format("[{}] {} is called {} since version {}; the old name still "
                      "works",
                      entry.where, renamed.old_name, renamed.name, renamed.since));
    }
  return warnings;
}

Registry<VisitKeys>& own_keys() {
  static Registry<VisitKeys> all("keys", {});
  return all;
}

}  // namespace

void register_keys(const std::string& title, VisitKeys keys) {
  require_function("keys", title, keys);
  own_keys().add(title, std::move(keys));
}

void visit_own_keys(StrategyOptions& own, KeyVisitor& field) {
  for (const VisitKeys* visit : own_keys().all()) (*visit)(own, field);
}

std::vector<std::pair<std::string, std::string>> own_key_values(const RunConfig& config) {
  StrategyOptions own = config.own;
  DescribeKeys describe;
  visit_own_keys(own, describe);
  std::vector<std::pair<std::string, std::string>> values;
  for (KeyDescription& key : describe.keys)
    values.emplace_back(std::move(key.name), std::move(key.default_value));
  return values;
}

RunConfig parse_config(std::string_view text, std::string_view name,
                       const std::vector<std::string>& overrides,
                       const std::optional<std::filesystem::path>& folder) {
  const toml::table file = parse_toml(text, name);
  std::vector<ConfigEntry> entries = file_entries(file, name);
  std::vector<toml::table> values(overrides.size());
  for (size_t i = 0; i < overrides.size(); ++i)
    entries.push_back(override_entry(overrides[i], values[i]));

  RunConfig config;
  config.warnings = use_present_names(entries);
  for (const ConfigEntry& entry : entries) {
    Assign assign(entry);
    visit_keys(config, assign);
    if (!assign.found()) refuse_unknown(entry.where, entry.key);
  }
  if (config.model.name.empty() && config.model.layers.empty())
    config.model.name = find_strategy(config.cluster.strategy).model;
  TrainConfig& train = config.train;
  train.optimizer =
      complete(train.optimizer, optim::optimizer_from_options, entries, "train.optimizer");
  train.schedule =
      complete(train.schedule, optim::schedule_from_options, entries, "train.schedule");
  const double clip_norm = optim::optimizer_from_options(train.optimizer).clip_norm;
  require(train.clip_norm == 0 || clip_norm == 0, ErrorKind::invalid_argument,
          "{}train.clip_norm: got {}, and clip_norm = {} in train.optimizer, expected one of them; "
          "try without the other",
          place_of(entries, "train.clip_norm"), train.clip_norm, clip_norm);
  if (!folder) return config;
  const auto in_file = [&](const std::string& key) {
    return std::none_of(entries.begin(), entries.end(), [&](const ConfigEntry& entry) {
      return entry.key == key && !entry.text.empty();
    });
  };
  for (std::string& note : resolve_paths(config, *folder, name, in_file))
    config.warnings.push_back(std::move(note));
  return config;
}

RunConfig read_config(const std::filesystem::path& path,
                      const std::vector<std::string>& overrides) {
  RunConfig config =
      parse_config(read_config_text(path), path.string(), overrides, path.parent_path());
  log_warnings(config);
  return config;
}

RunConfig default_config(const std::vector<std::string>& overrides) {
  RunConfig config = parse_config("", "defaults", overrides);
  log_warnings(config);
  return config;
}

void log_warnings(const RunConfig& config) {
  for (const std::string& warning : config.warnings) log(LogLevel::warning, "{}", warning);
}

std::string read_config_text(const std::filesystem::path& path) {
  return read_file(path, kMostFileBytes);
}

}  // namespace artel
