// How a TableEncoder is stored with a run: as JSON that people can read.
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/data/tables/table_encoder.h"

namespace artel::data {
namespace {

nlohmann::ordered_json to_json(const TableFeature& feature) {
  nlohmann::ordered_json column = {{"column", feature.column}};
  if (feature.of_numbers) column["of_numbers"] = true;
  if (feature.kind == TableFeature::Kind::names) {
    column["categories"] = feature.categories;
    return column;
  }
  if (feature.kind == TableFeature::Kind::hashed) {
    column["hashed"] = TableFeature::kBuckets;
    return column;
  }
  column["mean"] = feature.mean;
  column["deviation"] = feature.deviation;
  column["flags_missing"] = feature.flags_missing;
  if (feature.kind == TableFeature::Kind::date)
    column["date"] = {{"order", to_string(feature.date.order)},
                      {"has_time", feature.date.has_time},
                      {"year_mean", feature.year_mean},
                      {"year_deviation", feature.year_deviation}};
  return column;
}

void read_date(const nlohmann::json& date, const std::string& file, TableFeature& feature) {
  feature.kind = TableFeature::Kind::date;
  const auto order = date_order(date.at("order").get<std::string>());
  require(order.has_value(), ErrorKind::unsupported, "[{}] column '{}': unknown order of dates {}",
          file, feature.column, json_excerpt(date["order"]));
  feature.date = {.order = *order, .has_time = date.at("has_time")};
  feature.year_mean = date.at("year_mean");
  feature.year_deviation = date.at("year_deviation");
}

TableFeature feature_from_json(const nlohmann::json& column, const std::string& file) {
  TableFeature feature{.column = column.at("column")};
  feature.of_numbers = column.value("of_numbers", false);
  if (column.contains("categories")) {
    feature.kind = TableFeature::Kind::names;
    feature.categories = column["categories"].get<std::vector<std::string>>();
    require(std::is_sorted(feature.categories.begin(), feature.categories.end()),
            ErrorKind::corrupt, "[{}] the categories of column '{}' are not sorted", file,
            feature.column);
    return feature;
  }
  if (column.contains("hashed")) {
    feature.kind = TableFeature::Kind::hashed;
    require(column["hashed"] == TableFeature::kBuckets, ErrorKind::unsupported,
            "[{}] column '{}': got {} inputs for hashed names, expected {}", file, feature.column,
            json_excerpt(column["hashed"]), TableFeature::kBuckets);
    return feature;
  }
  feature.mean = column.at("mean");
  feature.deviation = column.at("deviation");
  feature.flags_missing = column.at("flags_missing");
  if (column.contains("date")) read_date(column["date"], file, feature);
  return feature;
}

}  // namespace

std::string TableEncoder::text() const {
  nlohmann::ordered_json columns = nlohmann::ordered_json::array();
  for (const TableFeature& feature : features_) columns.push_back(to_json(feature));
  nlohmann::ordered_json target = {{"column", target_}};
  if (classes_)
    target["classes"] = class_names_;
  else
    target.update({{"offset", offset_}, {"scale", scale_}});
  const nlohmann::ordered_json json = {{"target", target}, {"columns", columns}};
  return json.dump(1) + "\n";
}

void TableEncoder::save(const std::filesystem::path& path) const {
  write_file_atomically(path, text());
}

std::shared_ptr<const TableEncoder> TableEncoder::load(const std::filesystem::path& path) {
  constexpr uint64_t kMostBytes = 256 << 20;
  return parse(read_file(path, kMostBytes), path.string());
}

std::shared_ptr<const TableEncoder> TableEncoder::parse(const std::string& text,
                                                        const std::string& where) {
  const nlohmann::json json = parse_json(text, where);
  const std::shared_ptr<TableEncoder> encoder(new TableEncoder);
  try {
    const nlohmann::json& target = json.at("target");
    encoder->target_ = target.at("column");
    encoder->classes_ = target.contains("classes");
    if (encoder->classes_) {
      encoder->class_names_ = target["classes"].get<std::vector<std::string>>();
    } else {
      encoder->offset_ = target.at("offset");
      encoder->scale_ = target.at("scale");
    }
    for (const nlohmann::json& column : json.at("columns"))
      encoder->features_.push_back(feature_from_json(column, where));
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", where, error.what());
  }
  return encoder;
}

}  // namespace artel::data
