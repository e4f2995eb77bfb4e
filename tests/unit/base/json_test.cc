#include "artel/base/json.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/json_values.h"

namespace artel {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "file");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    return error.what();
  }
  return "";
}

TEST(Json, ReadsWhatIsThere) {
  const nlohmann::json value = parse_json(R"({"a": [1, {"b": null}], "b": "a"})", "file");
  EXPECT_EQ(value.at("a").at(0), 1);
  EXPECT_EQ(value.at("b"), "a");
}

TEST(Json, NamesFileAndPlaceOfWhatIsNotJson) {
  EXPECT_TRUE(refusal(R"({"a": )").starts_with("[file] is damaged, or not JSON: parse error at"));
  EXPECT_NE(refusal("\xff"), "");
  EXPECT_NE(refusal(""), "");
}

TEST(Json, ListsThatTakeMoreMemoryThanBytesAreRefused) {
  const auto lists = [](size_t count) {
    std::string text = "[[]";
    for (size_t i = 1; i < count; ++i) text += ",[]";
    return text + "]";
  };
  EXPECT_EQ(refusal(lists(50'000)), "");
  EXPECT_NE(refusal(lists(1'000'000)).find("lists and objects in"), std::string::npos);
}

TEST(Json, NestsNoDeeperThanACallerCanFollow) {
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_EQ(refusal(nested(64)), "");
  EXPECT_EQ(refusal(nested(65)), "[file] JSON that nests deeper than 64 levels");
  EXPECT_NE(refusal(nested(500'000)), "");
  EXPECT_NE(refusal(std::string(500'000, '[')), "");
}

TEST(Json, RefusesAKeyThatIsThereTwice) {
  EXPECT_EQ(refusal(R"({"a": {"b": 1}, "b": 2, "a": 3})"), "[file] has 'a' twice");
}

// The library would convert whatever there is, with any result.
TEST(Json, NumbersFitIntoWhatTheyAreReadAs) {
  const auto read = [](std::string_view text) { return parse_json(text, "file"); };
  EXPECT_EQ(read("-3").get<int>(), -3);
  EXPECT_EQ(read("12.0").get<int64_t>(), 12);
  EXPECT_EQ(read("18446744073709551615").get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(read("-9223372036854775808").get<int64_t>(), INT64_MIN);
  EXPECT_EQ(read("[1, 2]").get<std::vector<int16_t>>(), (std::vector<int16_t>{1, 2}));
  for (const char* text : {"18446744073709551616", "1e300", "-1e300", "0.5", "9223372036854775808"})
    EXPECT_THROW(read(text).get<int64_t>(), nlohmann::json::exception) << text;
  EXPECT_THROW(read("-1").get<uint64_t>(), nlohmann::json::exception);
  EXPECT_THROW(read("3000000000").get<int>(), nlohmann::json::exception);
  EXPECT_THROW(read("256").get<uint8_t>(), nlohmann::json::exception);
  EXPECT_THROW(read("\"3\"").get<int>(), nlohmann::json::exception);
}

TEST(Json, ExcerptsAreShort) {
  EXPECT_EQ(json_excerpt({1, "a"}), R"([1,"a"])");
  EXPECT_EQ(json_excerpt(std::string(1000, 'x')).size(), 104u);
}

TEST(Json, TextThatIsRefusedIsNull) {
  EXPECT_EQ(json_or_null("[1, 2]")[1], 2);
  EXPECT_EQ(ordered_json_or_null("{\"b\": 1, \"a\": 2}").dump(), "{\"b\":1,\"a\":2}");
  for (const std::string& text : {std::string(), std::string("{\"a\":"), std::string(100, '['),
                                  std::string(200'000, '[') + std::string(200'000, ']')}) {
    EXPECT_TRUE(json_or_null(text).is_null());
    EXPECT_TRUE(ordered_json_or_null(text).is_null());
  }
}

TEST(Json, WholeNumbers) {
  EXPECT_EQ(whole_number(7), 7);
  EXPECT_EQ(whole_number(7.0), 7);
  for (const char* text : {"0.5", "1e300", "18446744073709551615", "\"7\"", "null", "[7]"})
    EXPECT_FALSE(whole_number(json_or_null(text))) << text;
}

}  // namespace
}  // namespace artel
