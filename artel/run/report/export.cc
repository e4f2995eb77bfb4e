#include "artel/run/report/export.h"

#include <algorithm>
#include <map>

#include "artel/base/base64.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/observe/metrics.h"
#include "artel/observe/metrics_tail.h"
#include "artel/observe/xml_text.h"
#include "artel/run/folder/overview.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/report/curves.h"

namespace artel {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr uint64_t kMostText = 16 << 20;

// Empty if the file does not exist.
std::string text_of(const fs::path& file) {
  return fs::is_regular_file(file) ? read_file(file, kMostText) : "";
}

// Null if the file is missing or broken.
OrderedJson json_of(const fs::path& file) { return ordered_json_or_null(text_of(file)); }

OrderedJson texts_of(const RunFolder& folder) {
  OrderedJson texts = OrderedJson::array();
  for (const std::string& line : split(text_of(folder.texts()), '\n'))
    if (OrderedJson text = ordered_json_or_null(line); text.is_object()) texts.push_back(text);
  return texts;
}

std::vector<observe::MetricsTail::Event> events_of(const fs::path& run) {
  observe::MetricsTail tail(run);
  tail.read();
  return tail.events();
}

std::string escaped(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) lines.push_back(observe::xml_text(line));
  return join(lines, "\n");
}

// As the source of an <img>, where nothing in it can run.
std::string picture(const std::string& svg, const char* title) {
  if (svg.empty()) return "";
  std::string encoded;
  for (const char c : svg)
    if (std::isalnum(static_cast<unsigned char>(c)))
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return fmt::format("<h2>{0}</h2>\n<img alt=\"{0}\" src=\"data:image/svg+xml,{1}\">\n", title,
                     encoded);
}

std::string section(const char* title, const std::string& text) {
  if (trim(text).empty()) return "";
  return fmt::format("<h2>{}</h2>\n<pre>{}</pre>\n", title, escaped(text));
}

std::string plain(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string result_table(const OrderedJson& summary) {
  std::string rows;
  for (const auto& [name, value] : summary.items()) {
    if (value.is_structured()) continue;
    rows += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escaped(name), escaped(plain(value)));
  }
  return rows.empty() ? "" : "<h2>Result</h2>\n<table>\n" + rows + "</table>\n";
}

// Each is shown as its part of the one picture that holds all.
std::string mistakes_section(const OrderedJson& sheet, const std::string& png) {
  constexpr int64_t kWidth = 92;  // pixels on the page
  if (png.empty()) return "";
  try {
    const auto number_at = [&](const char* key) {
      return std::clamp<int64_t>(sheet.at(key).get<int64_t>(), 1, 10'000);
    };
    const int64_t columns = number_at("columns"),
                  height = kWidth * number_at("tile_height") / number_at("tile_width");
    std::string figures;
    int64_t number = 0;
    for (const OrderedJson& mistake : sheet.at("mistakes")) {
      figures += fmt::format(
          "<figure><div class=\"mistake\" style=\"background-position:-{}px -{}px\"></div>"
          "{}<br><b>{}</b> {:.1f} %</figure>\n",
          number % columns * kWidth, number / columns * height, escaped(plain(mistake.at("label"))),
          escaped(plain(mistake.at("answer"))), 100 * mistake.at("probability").get<double>());
      ++number;
    }
    const int64_t rows = (number + columns - 1) / columns;
    return fmt::format(
        "<h2>Mistakes</h2>\n<p>After step {}: the label, the answer, and how certain the network "
        "was.</p>\n<style>.mistake{{width:{}px;height:{}px;background-size:{}px {}px;"
        "image-rendering:pixelated;background-image:url(data:image/png;base64,{})}}</style>\n{}",
        escaped(plain(sheet.at("step"))), kWidth, height, columns * kWidth, rows * height,
        base64(png), figures);
  } catch (const OrderedJson::exception&) {
    return "";  // missing or of another version
  }
}

// The newest first.
std::string texts_section(const RunFolder& folder) {
  constexpr size_t kMost = 20;
  const OrderedJson texts = texts_of(folder);
  std::string all;
  for (size_t i = texts.size(); i > 0 && texts.size() - i < kMost; --i) {
    const OrderedJson& text = texts[i - 1];
    const auto word = [&](const char* key) { return text.contains(key) ? plain(text[key]) : ""; };
    all += fmt::format("step {}:\n{}{}\n\n", word("step"), word("prompt"), word("text"));
  }
  return section("Texts", all);
}

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1180px;margin:2em auto;padding:0 1em;"
    "color:#1c2330}h1{font-size:22px}h2{font-size:17px;margin-top:1.6em}"
    "td{padding:2px 18px 2px 0;border-bottom:1px solid #e1e5ec;font-variant-numeric:tabular-nums}"
    "pre{background:#f6f7f9;padding:12px;overflow:auto;font-size:12px;white-space:pre-wrap}"
    "img{max-width:100%}figure{display:inline-block;width:92px;margin:0 10px 10px 0;"
    "font-size:12px;vertical-align:top}";

}  // namespace

std::string export_csv(const fs::path& run) {
  overview(run);  // throws
  const Curves metrics = observe::read_metrics(run);
  std::map<int64_t, std::vector<std::string>> rows;
  std::string text = "step";
  size_t column = 0;
  for (const auto& [name, points] : metrics) {
    text += ',' + name;
    for (const auto& [step, value] : points) {
      std::vector<std::string>& row = rows[step];
      row.resize(metrics.size());
      row[column] = fmt::format("{}", value);
    }
    ++column;
  }
  text += '\n';
  for (const auto& [step, row] : rows) text += fmt::format("{},{}\n", step, join(row, ","));
  return text;
}

std::string export_json(const fs::path& run) {
  const RunFolder folder(run);
  const RunOverview about = overview(run);
  OrderedJson events = OrderedJson::array(), metrics = OrderedJson::object();
  for (const auto& event : events_of(run))
    events.push_back({{"step", event.step}, {"kind", event.kind}, {"text", event.text}});
  for (const auto& [name, points] : observe::read_metrics(run)) metrics[name] = points;
  const OrderedJson json = {{"run", run.string()},
                            {"status", to_string(about.status)},
                            {"remark", about.remark},
                            {"summary", json_of(folder.summary())},
                            {"config", text_of(folder.config())},
                            {"notes", text_of(run / "notes.txt")},
                            {"metrics", metrics},
                            {"events", events},
                            {"mistakes", json_of(folder.mistakes())},
                            {"texts", texts_of(folder)}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
}

std::string export_html(const fs::path& run) {
  const RunFolder folder(run);
  const RunOverview about = overview(run);
  std::string events;
  for (const auto& event : events_of(run))
    events += fmt::format("step {}: {}\n", format_count(event.step), event.text);
  const std::string name = escaped(fs::absolute(run).lexically_normal().filename().string());
  return fmt::format(
             "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{0}</title>\n"
             "<style>{1}</style>\n<h1>{0}</h1>\n<p>{2}{3}, step {4}, {5}</p>\n",
             name, kStyle, to_string(about.status),
             about.remark.empty() ? "" : " (" + escaped(about.remark) + ")",
             format_count(about.step), format_duration(about.seconds)) +
         section("Notes", text_of(run / "notes.txt")) +
         picture(curves_svg(observe::read_metrics(run)), "Curves") +
         result_table(json_of(folder.summary())) +
         picture(text_of(folder.confusion()), "Confusion matrix") +
         mistakes_section(json_of(folder.mistakes()), text_of(folder.mistakes_picture())) +
         texts_section(folder) + section("Events", events) +
         section("Configuration", text_of(folder.config())) + "</html>\n";
}

}  // namespace artel
