#include "artel/run/config.h"

// A damaged file can violate what the parser asserts or, with NDEBUG and clang, assumes; without
// either it reports the place of the error.
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/synonyms.h"
#include "artel/base/text.h"
#include "artel/optim/config.h"
#include "artel/optim/schedule.h"
#include "artel/run/config_keys.h"
#include "artel/run/config_paths.h"

namespace artel {
namespace {

constexpr uint64_t kMostFileBytes = 1 << 20;

// One assignment of a file or of the command line.
struct Entry {
  std::string key;
  const toml::node* node;
  std::string where;  // "run.toml:12" or "--set train.epochs=x"
  std::string text;   // as typed on the command line; empty for a file
};

[[noreturn]] void refuse(const Entry& entry, std::string_view what) {
  fail(ErrorKind::invalid_argument, "[{}] {}: {}", entry.where, entry.key, what);
}

// The value for messages: short, on one line.
std::string shown(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (const auto text = node.value_exact<std::string>()) {
    std::string line = text->substr(0, 40);
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < ' '; }, ' ');
    return fmt::format("\"{}\"", line);
  }
  if (const auto number = node.value_exact<int64_t>()) return fmt::format("{}", *number);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  return "a date or time";
}

[[noreturn]] void refuse_type(const Entry& entry, std::string_view expected) {
  refuse(entry, fmt::format("got {}, expected {}", shown(*entry.node), expected));
}

std::string text_of(const Entry& entry) {
  if (const auto text = entry.node->value_exact<std::string>()) return *text;
  if (entry.text.empty() || entry.node->is_array() || entry.node->is_table())
    refuse_type(entry, "text in quotes");
  return entry.text;
}

// An option of the optimizer or the schedule as the text that optim reads.
std::string option_text(const Entry& entry, const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto* list = node.as_array()) {
    std::vector<std::string> items;
    for (const toml::node& item : *list) items.push_back(option_text(entry, item));
    return fmt::format("[{}]", join(items, ", "));
  }
  if (!node.is_number() && !node.is_boolean()) refuse_type(entry, "numbers, text, true or false");
  return shown(node);
}

// "adam" or "sgd lr=0.1 momentum=0.9".
optim::Options parse_options(const Entry& entry, const std::string& text) {
  optim::Options options;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (options.empty() && equals == word.npos)
      options["name"] = word;
    else if (equals == word.npos || equals == 0)
      refuse(entry, fmt::format("got \"{}\", expected such as \"sgd lr=0.1\"", text));
    else
      options[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return options;
}

ByteSize parse_bytes(const Entry& entry, const std::string& text) {
  static const std::map<std::string, double> units = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  std::istringstream words(text);
  double number = -1;
  std::string unit, rest;
  words >> number >> unit >> rest;
  const auto found = units.find(unit);
  const double bytes = found == units.end() ? -1 : number * found->second;
  if (!rest.empty() || !(bytes >= 0 && bytes < 0x1p62))
    refuse(entry,
           fmt::format("got \"{}\", expected a size such as \"512 MiB\" or \"2 GiB\"", text));
  return {static_cast<int64_t>(bytes)};
}

WorkerCount parse_workers(const Entry& entry, const std::string& text) {
  WorkerCount count = {.is_range = true};
  const size_t dots = text.find("..");
  const auto number = [&](size_t from, size_t to, int64_t& value) {
    const auto [rest, error] = std::from_chars(text.data() + from, text.data() + to, value);
    return error == std::errc() && rest == text.data() + to;
  };
  if (dots == text.npos || !number(0, dots, count.least) ||
      !number(dots + 2, text.size(), count.most) || count.least > count.most)
    refuse(entry, fmt::format("got \"{}\", expected a number, or a range such as \"2..8\"", text));
  return count;
}

// A visitor of keys that assigns one entry to the key it names.
class Assign final : public KeyVisitor {
 public:
  explicit Assign(const Entry& entry) : entry_(entry) {}

  bool found() const { return found_; }

  void operator()(const Key& key, std::string& value) override {
    if (!matches(key)) return;
    value = text_of(entry_);
    const auto& choices = key.choices;
    if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end())
      return;
    const std::vector<std::string> names(choices.begin(), choices.end());
    refuse(entry_, fmt::format("got \"{}\", expected one of {}{}", value, join(names, ", "),
                               did_you_mean(value, names)));
  }
  void operator()(const Key& key, int64_t& value) override {
    if (matches(key)) value = whole_number(key, "a whole number");
  }
  void operator()(const Key& key, double& value) override {
    if (!matches(key)) return;
    const auto number = entry_.node->is_number() ? entry_.node->value<double>() : std::nullopt;
    if (!number || !std::isfinite(*number)) refuse_type(entry_, "a number");
    check_range(key, *number);
    value = *number;
  }
  void operator()(const Key& key, bool& value) override {
    if (!matches(key)) return;
    const auto flag = entry_.node->value_exact<bool>();
    if (!flag) refuse_type(entry_, "true or false");
    value = *flag;
  }
  void operator()(const Key& key, std::vector<std::string>& value) override {
    if (!matches(key)) return;
    value.clear();
    const toml::array* list = entry_.node->as_array();
    if (!list) {  // one text is a list of one
      value.push_back(text_of(entry_));
      return;
    }
    for (const toml::node& item : *list) {
      const auto text = item.value_exact<std::string>();
      if (!text) refuse(entry_, fmt::format("got {} in the list, expected text", shown(item)));
      value.push_back(*text);
    }
  }
  void operator()(const Key& key, optim::Options& value) {
    const std::string_view name = entry_.key;
    if (name.starts_with(key.name) && name.substr(key.name.size()).starts_with('.')) {
      found_ = true;
      value[std::string(name.substr(key.name.size() + 1))] = option_text(entry_, *entry_.node);
    }
    if (!matches(key)) return;
    value.clear();
    const toml::table* table = entry_.node->as_table();
    if (!table) {
      value = parse_options(entry_, text_of(entry_));
      return;
    }
    for (const auto& [option, node] : *table)
      value[std::string(option.str())] = option_text(entry_, node);
  }
  void operator()(const Key& key, ByteSize& value) {
    if (!matches(key)) return;
    if (entry_.node->is_integer())
      value.bytes = whole_number(key, "a size");
    else
      value = parse_bytes(entry_, text_of(entry_));
  }
  void operator()(const Key& key, WorkerCount& value) {
    if (!matches(key)) return;
    if (entry_.node->is_integer()) {
      value = {.most = whole_number(key, "a number of workers")};
      return;
    }
    value = parse_workers(entry_, text_of(entry_));
    check_range(key, static_cast<double>(value.least));
    check_range(key, static_cast<double>(value.most));
  }
  void operator()(const Key& key, ClassWeights& value) {
    if (!matches(key)) return;
    value = {};
    const toml::array* const list = entry_.node->as_array();
    if (!list) {
      value.balanced = text_of(entry_) == "balanced";
      if (!value.balanced) refuse_type(entry_, "\"balanced\" or a list of numbers");
      return;
    }
    for (const toml::node& item : *list) {
      const auto number = item.is_number() ? item.value<double>() : std::nullopt;
      if (!number || !(*number > 0 && *number < 1e6))
        refuse(entry_, fmt::format("got {} in the list, expected positive numbers", shown(item)));
      value.numbers.push_back(*number);
    }
  }
  void operator()(const Key& key, std::optional<int64_t>& value) override {
    if (!matches(key)) return;
    if (entry_.node->value_exact<std::string>() == "none")
      value.reset();
    else
      value = whole_number(key, "a whole number or \"none\"");
  }

 private:
  bool matches(const Key& key) {
    const bool same = key.name == entry_.key;
    found_ |= same;
    return same;
  }

  int64_t whole_number(const Key& key, std::string_view expected) const {
    const auto number = entry_.node->value_exact<int64_t>();
    if (!number) refuse_type(entry_, expected);
    check_range(key, static_cast<double>(*number));
    return *number;
  }

  void check_range(const Key& key, double number) const {
    if (number >= key.least && number <= key.most) return;
    refuse(entry_,
           fmt::format("got {}, expected {}", shown(*entry_.node),
                       std::isfinite(key.most) ? fmt::format("{} to {}", key.least, key.most)
                                               : fmt::format("at least {}", key.least)));
  }

  const Entry& entry_;
  bool found_ = false;
};

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

bool is_section(std::string_view name) {
  return name == "data" || name == "model" || name == "train" || name == "cluster" ||
         name == "observe";
}

// The place behind a string that begins at `at`. One that does not end is the parser's business.
size_t end_of_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const bool several_lines = text.substr(at).starts_with(std::string(3, quote));
  const std::string close(several_lines ? 3 : 1, quote);
  for (size_t i = at + close.size(); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text.substr(i).starts_with(close)) {
      i += close.size();
      // Up to two quotes before the closing ones are part of the string.
      for (int more = 0; several_lines && more < 2 && i < text.size() && text[i] == quote; ++more)
        ++i;
      return i;
    } else if (text[i] == '\n' && !several_lines) {
      return i;
    }
  }
  return text.size();
}

// Throws if a key has so many parts that a parser which recurses into them would run out of stack.
void check_dotted_keys(std::string_view text, std::string_view name) {
  constexpr int kMostParts = 64;
  int dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = end_of_string(text, i) - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '.') {
      require(++dots < kMostParts, ErrorKind::corrupt, "[{}:{}] a key of more than {} parts", name,
              1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n'),
              kMostParts);
    } else if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) {
      dots = 0;
    }
  }
}

// "; text needs quotes: set = "csv"" for a line of the form `set = csv`, or "".
std::string hint_for_line(std::string_view text, int64_t number) {
  const std::vector<std::string> lines = split(text, '\n');
  if (number < 1 || number > std::ssize(lines)) return "";
  const std::string& line = lines[static_cast<size_t>(number - 1)];
  const size_t equals = line.find('=');
  if (equals == std::string::npos) return "";
  const std::string_view key = trim(std::string_view(line).substr(0, equals));
  const std::string_view value = trim(std::string_view(line).substr(equals + 1));
  const bool is_word = !value.empty() && std::isalpha(static_cast<unsigned char>(value[0])) &&
                       value.find_first_of("\"'[]{}#=") == std::string_view::npos;
  return is_word ? fmt::format("; text needs quotes: {} = \"{}\"", key, value) : "";
}

toml::table parse_toml(std::string_view text, std::string_view name) {
  check_dotted_keys(text, name);
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const int64_t line = error.source().begin.line;
    fail(ErrorKind::corrupt, "[{}:{}] not TOML: {}{}", name, line, error.description(),
         hint_for_line(text, line));
  }
}

std::vector<Entry> file_entries(const toml::table& table, std::string_view name) {
  const auto where = [&](const toml::node& node) {
    return fmt::format("{}:{}", name, node.source().begin.line);
  };
  std::vector<Entry> entries;
  for (const auto& [section, content] : table) {
    const std::string prefix(section.str());
    if (!is_section(prefix)) {
      // The section's own line is unknown to the parser if it is implied by [a.b]: use the key's.
      const std::string line = fmt::format("{}:{}", name, section.source().begin.line);
      require(!content.is_table(), ErrorKind::invalid_argument, "[{}] unknown section '{}'{}", line,
              prefix, did_you_mean(prefix, {"data", "model", "train", "cluster", "observe"}));
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
Entry override_entry(const std::string& text, toml::table& value) {
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
std::string place_of(const std::vector<Entry>& entries, std::string_view key) {
  std::string where;
  for (const Entry& entry : entries)
    if (entry.key.starts_with(key)) where = fmt::format("[{}] ", entry.where);
  return where;
}

// Fills in the defaults of the options; an error gets the place of the key's last assignment.
optim::Options complete(const optim::Options& options, auto&& from_options,
                        const std::vector<Entry>& entries, std::string_view key) {
  try {
    return to_options(from_options(options));
  } catch (const Error& error) {
    fail(error.kind(), "{}{}", place_of(entries, key), error.what());
  }
}

// Gives each entry the present name of its key; what to say of those that had an old one.
std::vector<std::string> use_present_names(std::vector<Entry>& entries) {
  std::vector<std::string> warnings;
  for (const RenamedKey& renamed : kRenamedKeys)
    for (Entry& entry : entries) {
      if (entry.key != renamed.old_name) continue;
      // Within a file there is no order that could decide.
      for (const Entry& other : entries)
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

}  // namespace

RunConfig parse_config(std::string_view text, std::string_view name,
                       const std::vector<std::string>& overrides,
                       const std::optional<std::filesystem::path>& folder) {
  const toml::table file = parse_toml(text, name);
  std::vector<Entry> entries = file_entries(file, name);
  std::vector<toml::table> values(overrides.size());
  for (size_t i = 0; i < overrides.size(); ++i)
    entries.push_back(override_entry(overrides[i], values[i]));

  RunConfig config;
  config.warnings = use_present_names(entries);
  for (const Entry& entry : entries) {
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
    return std::none_of(entries.begin(), entries.end(), [&](const Entry& entry) {
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
