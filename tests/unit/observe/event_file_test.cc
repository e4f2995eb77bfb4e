// Event files read back by a reader that shares no code with the writer.
#include "artel/observe/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>

#include "artel/base/file.h"
#include "tests/support/temporary_folder.h"

namespace artel::observe {
namespace {

// Bit by bit, as the polynomial says.
uint32_t slow_crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const uint32_t in = (static_cast<uint8_t>(byte) >> bit) & 1;
      crc = ((crc ^ in) & 1) ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
    }
  return crc ^ 0xffffffff;
}

template <typename T>
T fixed(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The fields of a message, in their order: numbers as bytes of their own.
struct Field {
  int number, type;
  uint64_t integer = 0;
  std::string bytes;
};

std::vector<Field> fields_of(const std::string& message) {
  std::vector<Field> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t tag = varint();
    Field field{static_cast<int>(tag >> 3), static_cast<int>(tag & 7)};
    if (field.type == 0) {
      field.integer = varint();
    } else {
      const size_t size = field.type == 1 ? 8 : field.type == 5 ? 4 : varint();
      EXPECT_TRUE(field.type == 1 || field.type == 2 || field.type == 5);
      EXPECT_LE(at + size, message.size());
      field.bytes = message.substr(at, size);
      at += size;
    }
    fields.push_back(field);
  }
  return fields;
}

const Field& at(const std::vector<Field>& fields, int number) {
  for (const Field& field : fields)
    if (field.number == number) return field;
  throw std::out_of_range("no field " + std::to_string(number));
}

std::vector<Field> inside(const std::vector<Field>& fields, int number) {
  return fields_of(at(fields, number).bytes);
}

std::vector<double> doubles(const std::string& packed) {
  std::vector<double> values;
  for (size_t i = 0; i < packed.size(); i += 8) values.push_back(fixed<double>(packed.substr(i)));
  return values;
}

// The messages of the only event file of a folder; their frames are checked.
std::vector<std::string> messages_in(const std::filesystem::path& folder) {
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    file = read_file(entry.path());
  const auto check = [](std::string_view bytes, uint32_t masked) {
    const uint32_t turned = masked - 0xa282ead8;
    EXPECT_EQ((turned >> 17) | (turned << 15), slow_crc32c(bytes));
  };
  std::vector<std::string> messages;
  for (size_t at = 0; at < file.size();) {
    const auto length = fixed<uint64_t>(file.substr(at, 8));
    check(file.substr(at, 8), fixed<uint32_t>(file.substr(at + 8)));
    messages.push_back(file.substr(at + 12, length));
    check(messages.back(), fixed<uint32_t>(file.substr(at + 12 + length)));
    at += 16 + length;
  }
  return messages;
}

// The one value of the last event, which is of this step.
std::vector<Field> value_of(const std::string& message, uint64_t step) {
  const std::vector<Field> event = fields_of(message);
  EXPECT_GT(fixed<double>(at(event, 1).bytes), 1.6e9);
  EXPECT_EQ(at(event, 2).integer, step);
  const std::vector<Field> summary = inside(event, 5);
  EXPECT_EQ(summary.size(), 1u);
  return inside(summary, 1);
}

TEST(EventFile, IsReadByAnother) {
  const TemporaryFolder folder;
  {
    EventFileWriter writer(folder.path(), 7);
    writer.write(7, {{"train/loss", 0.25}});
    writer.write(300, "weights/0.weight",
                 Histogram{.min = -1,
                           .max = 3,
                           .count = 4,
                           .sum = 2.5,
                           .squares = 10,
                           .limits = {1, 3},
                           .counts = {3, 1}});
    writer.write(
        301, "test/mistakes",
        PngPicture{.width = 200, .height = 30, .channels = 1, .bytes = std::string(500, '\xff')});
    writer.write_text(302, "texts", "to be\nor not to be");
  }
  const std::vector<std::string> messages = messages_in(folder.path());
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(at(fields_of(messages[0]), 3).bytes, "brain.Event:2");
  EXPECT_EQ(at(fields_of(messages[1]), 2).integer, 7u);
  EXPECT_EQ(at(inside(fields_of(messages[1]), 7), 1).integer, 1u);

  const std::vector<Field> scalar = value_of(messages[2], 7);
  EXPECT_EQ(at(scalar, 1).bytes, "train/loss");
  EXPECT_EQ(fixed<float>(at(scalar, 2).bytes), 0.25f);

  const std::vector<Field> histogram = value_of(messages[3], 300);
  EXPECT_EQ(at(histogram, 1).bytes, "weights/0.weight");
  const std::vector<Field> bins = inside(histogram, 5);
  const double numbers[] = {-1, 3, 4, 2.5, 10};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fixed<double>(at(bins, i + 1).bytes), numbers[i]);
  EXPECT_EQ(doubles(at(bins, 6).bytes), (std::vector<double>{1, 3}));
  EXPECT_EQ(doubles(at(bins, 7).bytes), (std::vector<double>{3, 1}));

  const std::vector<Field> picture = value_of(messages[4], 301);
  EXPECT_EQ(at(picture, 1).bytes, "test/mistakes");
  const std::vector<Field> image = inside(picture, 4);
  EXPECT_EQ(at(image, 1).integer, 30u);
  EXPECT_EQ(at(image, 2).integer, 200u);
  EXPECT_EQ(at(image, 3).integer, 1u);
  EXPECT_EQ(at(image, 4).bytes, std::string(500, '\xff'));

  const std::vector<Field> text = value_of(messages[5], 302);
  EXPECT_EQ(at(text, 1).bytes, "texts");
  EXPECT_EQ(at(inside(text, 8), 1).integer, 7u);  // a string
  EXPECT_EQ(at(inside(text, 8), 8).bytes, "to be\nor not to be");
  EXPECT_EQ(at(inside(inside(text, 9), 1), 1).bytes, "text");
}

}  // namespace
}  // namespace artel::observe
