#include "artel/plan/machines/machine_file.h"

#include <cmath>
#include <functional>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/keys.h"
#include "artel/base/text.h"
#include "artel/base/toml_text.h"
#include "artel/plan/machines/known_machines.h"
#include "artel/plan/machines/units.h"

namespace artel::plan {
namespace {

constexpr uint64_t kMostFileBytes = 1 << 20;
constexpr size_t kMostEntries = 1000;
constexpr double kMostCount = 1e6;

// Reads a value into its member. Throws an Error without a place.
using Read = std::function<void(const toml::node&)>;

struct Field {
  std::string_view key;
  Read read;
};

// Reads a table into the fields of an entry. Throws for unknown keys.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string_view file) : table_(table), file_(file) {}

  std::string place(const toml::node& node) const {
    return fmt::format("{}:{}", file_, node.source().begin.line);
  }

  void read(const std::vector<Field>& fields) const {
    for (const auto& [key, node] : table_) {
      const auto field = std::ranges::find(fields, key.str(), &Field::key);
      std::vector<std::string> known;
      for (const Field& one : fields) known.emplace_back(one.key);
      const std::string name = printable_line(key.str());
      require(field != fields.end(), ErrorKind::invalid_argument, "[{}:{}] unknown key '{}'{}",
              file_, key.source().begin.line, name, did_you_mean(name, known));
      try {
        field->read(node);
      } catch (const Error& error) {
        const std::string_view what = error.what();
        if (what.starts_with('[')) throw;
        fail(error.kind(), "[{}] {}: {}", place(node), name, what);
      }
    }
  }

 private:
  const toml::table& table_;
  std::string_view file_;
};

[[noreturn]] void refuse_value(std::string_view expected) {
  fail(ErrorKind::invalid_argument, "got another type, expected {}", expected);
}

Read text_field(std::string& member) {
  return [&member](const toml::node& node) {
    const auto text = node.value_exact<std::string>();
    if (!text) refuse_value("text in quotes");
    require(text->size() <= 200, ErrorKind::invalid_argument,
            "got {} characters, expected at most 200", text->size());
    member = printable_line(*text);
  };
}

Read quantity_field(double& member, Unit unit) {
  return [&member, unit](const toml::node& node) {
    if (const auto text = node.value_exact<std::string>())
      member = parse_quantity(*text, unit);
    else if (const auto number = node.value<double>(); number && node.is_number())
      member = parse_quantity(fmt::format("{}", *number), unit);
    else
      refuse_value("a number, or text with a unit");
  };
}

Read count_field(int64_t& member) {
  return [&member](const toml::node& node) {
    const auto number = node.value_exact<int64_t>();
    if (!number) refuse_value("a whole number");
    require(*number >= 1 && static_cast<double>(*number) <= kMostCount, ErrorKind::invalid_argument,
            "got {}, expected 1 to {}", *number, format_count(static_cast<int64_t>(kMostCount)));
    member = *number;
  };
}

Read flag_field(bool& member) {
  return [&member](const toml::node& node) {
    const auto flag = node.value_exact<bool>();
    if (!flag) refuse_value("true or false");
    member = *flag;
  };
}

// A speed of ops. Without the key, that part of the work takes no time.
Read speed_field(double& member, Unit unit) {
  return [&member, read = quantity_field(member, unit)](const toml::node& node) {
    read(node);
    require(member > 0, ErrorKind::invalid_argument,
            "got 0, expected more than 0; leave the key out if this takes no time");
  };
}

void read_ops(const toml::node& node, std::string_view file, MachineKind& kind) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) refuse_value("tables such as [machine.op.product]");
  require(table->size() <= kMostEntries, ErrorKind::invalid_argument, "got {} classes of ops",
          table->size());
  for (const auto& [key, entry] : *table) {
    const toml::table* const one = entry.as_table();
    if (one == nullptr) refuse_value("tables such as [machine.op.product]");
    const std::string name = printable_line(key.str());
    require(std::ranges::count(known_op_classes(), name) == 1, ErrorKind::invalid_argument,
            "[{}:{}] unknown class of ops '{}'{}; known: {}", file, key.source().begin.line, name,
            did_you_mean(name, known_op_classes()), join(known_op_classes(), ", "));
    OpSpeed& speed = kind.ops[name];
    TableReader(*one, file)
        .read({{"flops", speed_field(speed.flops, Unit::flops)},
               {"bandwidth", speed_field(speed.bandwidth, Unit::rate)},
               {"weight_bandwidth", speed_field(speed.weight_bandwidth, Unit::rate)},
               {"overhead", quantity_field(speed.overhead, Unit::seconds)}});
  }
}

MachineKind read_kind(const toml::table& table, std::string_view file) {
  MachineKind kind;
  TableReader(table, file)
      .read({{"name", text_field(kind.name)},
             {"count", count_field(kind.count)},
             {"devices", count_field(kind.devices)},
             {"cores", count_field(kind.cores)},
             {"flops", quantity_field(kind.flops, Unit::flops)},
             {"memory", quantity_field(kind.memory, Unit::bytes)},
             {"memory_bandwidth", quantity_field(kind.memory_bandwidth, Unit::rate)},
             {"network", quantity_field(kind.network.bandwidth, Unit::rate)},
             {"latency", quantity_field(kind.network.latency, Unit::seconds)},
             {"inside", quantity_field(kind.inside.bandwidth, Unit::rate)},
             {"inside_latency", quantity_field(kind.inside.latency, Unit::seconds)},
             {"switch", text_field(kind.at)},
             {"price", quantity_field(kind.price, Unit::amount)},
             {"variation", quantity_field(kind.variation, Unit::fraction)},
             {"shared_cores", flag_field(kind.shared_cores)},
             {"fit_error", quantity_field(kind.fit_error, Unit::fraction)},
             {"op", [&](const toml::node& node) { read_ops(node, file, kind); }}});
  return kind;
}

Switch read_switch(const toml::table& table, std::string_view file) {
  Switch one;
  TableReader(table, file)
      .read({{"name", text_field(one.name)},
             {"uplink", text_field(one.uplink)},
             {"bandwidth", quantity_field(one.link.bandwidth, Unit::rate)},
             {"latency", quantity_field(one.link.latency, Unit::seconds)}});
  return one;
}

// Reads the tables of a list such as [[machine]].
template <typename Entry, typename ReadOne>
Read list_field(std::string_view file, std::vector<Entry>& entries, std::vector<EntryPlace>& places,
                const ReadOne& read_one) {
  return [=, &entries, &places](const toml::node& node) {
    const toml::array* const list = node.as_array();
    if (list == nullptr) refuse_value("tables in double brackets such as [[machine]]");
    require(list->size() <= kMostEntries, ErrorKind::invalid_argument,
            "got {} entries, expected at most {}", list->size(), kMostEntries);
    for (const toml::node& item : *list) {
      const toml::table* const table = item.as_table();
      if (table == nullptr) refuse_value("tables in double brackets such as [[machine]]");
      entries.push_back(read_one(*table, file));
      const auto place = [&](const toml::source_region& at) {
        return fmt::format("{}:{}", file, at.begin.line);
      };
      EntryPlace& own = places.emplace_back(EntryPlace{place(item.source())});
      for (const auto& [key, value] : *table) own.keys.emplace(key.str(), place(key.source()));
    }
  };
}

void write(std::string& text, std::string_view key, double value, Unit unit) {
  if (value > 0) text += fmt::format("{} = \"{}\"\n", key, format_quantity(value, unit));
}

// Links have other defaults than 0.
void write_latency(std::string& text, std::string_view key, double value) {
  text += fmt::format("{} = \"{}\"\n", key, format_quantity(value, Unit::seconds));
}

std::string kind_text(const MachineKind& kind) {
  std::string text =
      fmt::format("\n[[machine]]\nname = {}\ncount = {}\n", toml_value(kind.name), kind.count);
  if (kind.devices > 1) text += fmt::format("devices = {}\n", kind.devices);
  text += fmt::format("cores = {}\n", kind.cores);
  write(text, "flops", kind.flops, Unit::flops);
  write(text, "memory", kind.memory, Unit::bytes);
  write(text, "memory_bandwidth", kind.memory_bandwidth, Unit::rate);
  write(text, "network", kind.network.bandwidth, Unit::rate);
  write_latency(text, "latency", kind.network.latency);
  write(text, "inside", kind.inside.bandwidth, Unit::rate);
  write_latency(text, "inside_latency", kind.inside.latency);
  if (!kind.at.empty()) text += fmt::format("switch = {}\n", toml_value(kind.at));
  if (kind.price > 0) text += fmt::format("price = {:.6g}\n", kind.price);
  write(text, "variation", kind.variation, Unit::fraction);
  if (kind.shared_cores) text += "shared_cores = true\n";
  write(text, "fit_error", kind.fit_error, Unit::fraction);
  for (const auto& [name, speed] : kind.ops) {
    text += fmt::format("[machine.op.{}]\n", toml_value(name));
    write(text, "flops", speed.flops, Unit::flops);
    write(text, "bandwidth", speed.bandwidth, Unit::rate);
    write(text, "weight_bandwidth", speed.weight_bandwidth, Unit::rate);
    write(text, "overhead", speed.overhead, Unit::seconds);
  }
  return text;
}

}  // namespace

Machines parse_machines(std::string_view text, std::string_view name) {
  require(text.size() <= kMostFileBytes, ErrorKind::corrupt, "[{}] got {}, expected at most {}",
          name, format_bytes(static_cast<double>(text.size())),
          format_bytes(static_cast<double>(kMostFileBytes)));
  const toml::table table = parse_toml(text, name);
  Machines machines = {.name = std::string(name)};
  EntryPlaces places;
  TableReader(table, name)
      .read({{"about", text_field(machines.about)},
             {"machine", list_field(name, machines.kinds, places.kinds, read_kind)},
             {"switch", list_field(name, machines.switches, places.switches, read_switch)}});
  check_machines(machines, places);
  return machines;
}

Machines machines_by_name(const std::string& name) {
  if (const auto text = known_machine_file(name)) return parse_machines(*text, name);
  if (name.ends_with(".toml")) return parse_machines(read_file(name, kMostFileBytes), name);
  const std::vector<std::string> known = known_machines();
  fail(ErrorKind::not_found, "[--on {}] neither a file (.toml) nor known machines{}; known: {}",
       name, did_you_mean(name, known), join(known, ", "));
}

std::string to_toml(const Machines& machines) {
  std::string text;
  if (!machines.about.empty()) text += fmt::format("about = {}\n", toml_value(machines.about));
  for (const MachineKind& kind : machines.kinds) text += kind_text(kind);
  for (const Switch& one : machines.switches) {
    text += fmt::format("\n[[switch]]\nname = {}\n", toml_value(one.name));
    if (!one.uplink.empty()) text += fmt::format("uplink = {}\n", toml_value(one.uplink));
    write(text, "bandwidth", one.link.bandwidth, Unit::rate);
    write_latency(text, "latency", one.link.latency);
  }
  return text;
}

}  // namespace artel::plan
