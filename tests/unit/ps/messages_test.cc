#include "artel/ps/messages.h"

#include <gtest/gtest.h>

#include <limits>

#include <cstring>

#include "artel/base/error.h"
#include "artel/ps/report.h"
#include "artel/ps/setup.h"

namespace artel::ps {
namespace {

std::vector<std::byte> bytes_of(const Header& header, std::span<const uint64_t> keys = {},
                                std::span<const float> values = {}) {
  std::vector<std::byte> bytes;
  for (const auto part :
       {std::as_bytes(std::span(&header, 1)), std::as_bytes(keys), std::as_bytes(values)})
    bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

TEST(Messages, SurviveTheWire) {
  const std::vector<uint64_t> keys = {3, 5};
  const std::vector<float> values = {1.5f, -2};
  Header header = {.kind = Kind::push, .iteration = 7, .keys = {0, 10}, .signature = 9};
  header.listed = 2;
  header.value_bytes = 8;
  const Message message = parse_message(bytes_of(header, keys, values));
  EXPECT_EQ(message.keys, keys);
  EXPECT_EQ(message.header.iteration, 7);
  EXPECT_EQ(std::memcmp(message.values.data(), values.data(), 8), 0);
}

TEST(Messages, RefuseWhatNobodySends) {
  Header header = {.kind = Kind::push, .keys = {0, 10}};
  EXPECT_NO_THROW(check_header(header));
  for (const auto& spoil : std::initializer_list<void (*)(Header&)>{
           [](Header& h) { h.magic = 1; }, [](Header& h) { h.kind = static_cast<Kind>(99); },
           [](Header& h) {
             h.keys = {5, 3};
           },
           [](Header& h) { h.listed = 11; }, [](Header& h) { h.value_bytes = ~uint64_t{0}; },
           [](Header& h) { h.partials = 0; }, [](Header& h) { h.partials = 1 << 20; },
           [](Header& h) { h.first_lane = 4; }, [](Header& h) { h.iteration = -1; }}) {
    Header bad = header;
    spoil(bad);
    EXPECT_THROW(check_header(bad), Error);
  }
  header.value_bytes = 4;
  EXPECT_THROW(parse_message(bytes_of(header)), Error);
  const float extra[] = {1, 2};
  EXPECT_THROW(parse_message(bytes_of(header, {}, extra)), Error);
}

TEST(Messages, SignaturesTellListsApart) {
  const std::vector<uint64_t> a = {1, 2, 3}, b = {1, 2, 4}, none;
  EXPECT_NE(signature_of(a), signature_of(b));
  EXPECT_NE(signature_of(none), 0u);
}

TEST(Texts, SetupsThatNoMemoryHoldsAreRefused) {
  ps::Setup setup = {.keys = {0, uint64_t{1} << 62}};  // times four it would be 0 bytes
  EXPECT_THROW(setup_from_text(to_text(setup)), Error);
  setup = {.keys = {0, 16}, .lanes = std::numeric_limits<int>::max()};
  EXPECT_THROW(setup_from_text(to_text(setup)), Error);
}

TEST(Texts, SetupAndReportComeBack) {
  const ps::Setup setup = {.keys = {16, 64},
                           .segments = {{"a", {0, 32}, SegmentKind::weight, false, 0},
                                        {"b", {32, 64}, SegmentKind::average, true, 0.1f}},
                           .rule = {{"name", "adam"}},
                           .together = false,
                           .lanes = 3,
                           .delay = std::nullopt,
                           .finished = 12,
                           .compress = "int8"};
  const ps::Setup back = setup_from_text(to_text(setup));
  EXPECT_EQ(to_text(back), to_text(setup));
  EXPECT_FALSE(back.delay.has_value());
  EXPECT_THROW(setup_from_text("{}"), Error);
  EXPECT_THROW(setup_from_text("nonsense"), Error);

  const Report report = {
      .staleness = {{0, 5}, {3, 1}}, .lost = {{2, 17}}, .nonzeros = 4, .penalty = 0.5};
  EXPECT_EQ(report_from_text(to_text(report)), report);
  Report sum = report;
  sum += report;
  EXPECT_EQ(sum.staleness.at(0), 10);
  EXPECT_EQ(sum.lost.at(2), 17);
}

}  // namespace
}  // namespace artel::ps
