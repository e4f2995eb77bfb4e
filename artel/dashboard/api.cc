#include "artel/dashboard/api.h"

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/run/folder/run_folder.h"

namespace artel::dashboard {
namespace {

using Json = nlohmann::ordered_json;

// Replaces invalid UTF-8, because files are untrusted.
std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const Catalogue::Run& run) {
  const RunOverview& overview = run.overview;
  Json json = {{"name", run.name},
               {"status", to_string(overview.status)},
               {"remark", overview.remark},
               {"step", overview.step},
               {"seconds", overview.seconds},
               {"begun", run.begun},
               {"bytes", overview.bytes},
               {"version", run.version}};
  if (overview.loss) json["loss"] = *overview.loss;
  if (overview.metric) json["metric"] = *overview.metric;
  json["metric_name"] = overview.metric_name;
  return json;
}

constexpr std::pair<const char*, const char*> kFiles[] = {
    {"confusion.svg", "image/svg+xml"},   {"curves.svg", "image/svg+xml"},
    {"mistakes.png", "image/png"},        {"mistakes.json", "application/json"},
    {"texts.jsonl", "text/plain"},        {"config.toml", "text/plain"},
    {"summary.json", "application/json"}, {"metrics.jsonl", "text/plain"}};

// The value of a setting as JSON: a number, a boolean, or plain text instead of TOML.
Json plain(const std::string& toml) {
  Json value = ordered_json_or_null(toml);
  return value.is_primitive() && !value.is_null() ? value : Json(toml);
}

// The last value of a metric by its full name, or of the first one with that ending. Held-out parts
// come before training.
Json last_of(const observe::MetricsTail& metrics, const std::string& key) {
  for (const std::string prefix : {"", "test/", "validation/", "train/"}) {
    const auto found = metrics.series().find(prefix + key);
    if (found != metrics.series().end() && !found->second.empty()) return found->second.last();
  }
  return {};
}

// The parts of a worker's time in a line of workers.jsonl (observe/live_history.h). Lines of
// earlier versions do not separate the wait for the wire from the wait for workers.
std::vector<std::pair<const char*, Json>> parts_of_time(const Json& shares) {
  const auto share = [&](size_t i) { return shares[i].is_number() ? shares[i] : Json(); };
  const bool separated = shares.size() > 5 && shares[5].is_number() && shares[2].is_number();
  const Json waiting =
      separated ? Json(shares[2].get<double>() - shares[5].get<double>()) : share(2);
  return {{"computing", share(0)},
          {"data", share(1)},
          {"waiting", waiting},
          {"wire_wait", separated ? share(5) : Json()},
          {"wire", share(3)}};
}

// The last lines of texts.jsonl, newest first.
Json newest_texts(const std::string& lines) {
  constexpr size_t kMost = 20;
  Json texts = Json::array();
  const std::vector<std::string> all = split(lines, '\n');
  for (auto line = all.rbegin(); line != all.rend() && texts.size() < kMost; ++line)
    if (Json text = ordered_json_or_null(*line); text.is_object()) texts.push_back(text);
  return texts;
}

}  // namespace

std::string runs_json(Catalogue& catalogue) {
  Json list = Json::array();
  for (const Catalogue::Run& run : catalogue.runs()) list.push_back(to_json(run));
  return dumped({{"folder", catalogue.folder().string()}, {"runs", list}});
}

std::string values_json(Catalogue& catalogue, const std::string& key) {
  Json values = Json::object();
  for (const Catalogue::Run& run : catalogue.runs()) {
    const std::map<std::string, std::string> settings = catalogue.settings(run.name);
    Json value;
    if (const auto setting = settings.find(key); setting != settings.end())
      value = plain(setting->second);
    else
      catalogue.with_metrics(run.name, [&](const auto& metrics) { value = last_of(metrics, key); });
    if (!value.is_null()) values[run.name] = value;
  }
  return dumped({{"key", key}, {"values", values}});
}

std::string series_json(Catalogue& catalogue, const std::string& run,
                        const SeriesRequest& request) {
  Json series = Json::object(), events = Json::array();
  catalogue.with_metrics(run, [&](const observe::MetricsTail& metrics) {
    for (const auto& [name, curve] : metrics.series()) {
      auto points = curve.points(request.points, request.from, request.to);
      series[name] = {{"x", std::move(points.x)}, {"y", std::move(points.y)}};
    }
    for (const auto& event : metrics.events())
      events.push_back({{"step", event.step}, {"kind", event.kind}, {"text", event.text}});
  });
  return dumped({{"run", run}, {"series", series}, {"events", events}});
}

std::string run_json(Catalogue& catalogue, const std::string& run) {
  Json files = Json::array();
  for (const auto& [name, type] : kFiles)
    if (std::filesystem::is_regular_file(catalogue.path(run) / name)) files.push_back(name);
  const auto json_of = [&](const char* name) {
    return ordered_json_or_null(catalogue.file(run, name).value_or(""));
  };
  return dumped({{"overview", to_json(catalogue.run(run))},
                 {"config", catalogue.file(run, "config.toml").value_or("")},
                 {"settings", catalogue.settings(run)},
                 {"summary", json_of("summary.json")},
                 {"mistakes", json_of("mistakes.json")},
                 {"texts", newest_texts(catalogue.file(run, "texts.jsonl").value_or(""))},
                 {"notes", catalogue.file(run, "notes.txt").value_or("")},
                 {"files", files}});
}

std::string live_json(Catalogue& catalogue, const std::string& run) {
  return to_json(catalogue.live(run), run);
}

std::string history_json(Catalogue& catalogue, const std::string& run, size_t most) {
  constexpr uint64_t kMostBytes = 64 << 20;
  const std::string text = catalogue.file(run, "workers.jsonl", kMostBytes).value_or("");
  std::vector<std::string> lines = split(text, '\n');
  const size_t every = std::max<size_t>(1, (lines.size() + most - 1) / std::max<size_t>(most, 1));
  Json at = Json::array(), step = Json::array(), workers = Json::object();
  for (size_t i = 0; i < lines.size(); i += every) {
    const Json line = ordered_json_or_null(lines[i]);
    if (!line.is_object() || !line.contains("workers") || !line["workers"].is_object()) continue;
    const size_t moment = at.size();
    const auto number = [&](const char* key) {
      const auto found = line.find(key);
      return found != line.end() && found->is_number() ? *found : Json(0);
    };
    at.push_back(number("at"));
    step.push_back(number("step"));
    for (const auto& [name, shares] : line["workers"].items()) {
      if (!shares.is_array() || shares.size() < 4) continue;
      for (const auto& [part, share] : parts_of_time(shares)) {
        Json& row = workers[name][part];
        while (row.size() < moment) row.push_back(nullptr);  // the worker was absent
        row.push_back(share);
      }
    }
  }
  return dumped({{"at", at}, {"step", step}, {"workers", workers}});
}

std::string trace_json(Catalogue& catalogue, const std::string& run) {
  const Json trace = ordered_json_or_null(catalogue.file(run, "trace_summary.json").value_or(""));
  const auto has = [](const Json& json, const char* name, Json::value_t type) {
    return json.is_object() && json.contains(name) && json[name].type() == type;
  };
  // A run of another version may have a different format.
  const bool known = has(trace, "steps", Json::value_t::number_unsigned) &&
                     has(trace, "times_faster", Json::value_t::object) &&
                     has(trace, "timeline", Json::value_t::object) &&
                     has(trace["timeline"], "step", Json::value_t::number_unsigned) &&
                     has(trace["timeline"], "seconds", Json::value_t::number_float) &&
                     has(trace["timeline"], "workers", Json::value_t::array);
  return known ? dumped(trace) : "null";
}

std::string differences_json(Catalogue& catalogue, const std::vector<std::string>& runs) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& run : runs) paths.push_back(catalogue.path(run));
  Json list = Json::array();
  if (paths.size() > 1)
    for (const ChangedKey& key : changed_keys(paths))
      list.push_back({{"key", key.name}, {"values", key.values}});
  return dumped(list);
}

std::string type_of_file(const std::string& name) {
  for (const auto& [known, type] : kFiles)
    if (name == known) return type;
  return "";
}

}  // namespace artel::dashboard
