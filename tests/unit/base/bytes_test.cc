#include "artel/base/bytes.h"

#include <gtest/gtest.h>

#include "artel/base/with_where.h"

namespace artel {
namespace {

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return std::string(to_string(error.kind())) + ": " + error.what();
  }
  return "";
}

TEST(ByteReader, ReadsNumbersOfBothByteOrders) {
  const Bytes bytes = make_bytes(std::string("\x01\x02\x03\x04\xff\xff", 6), "file");
  ByteReader reader(bytes);
  EXPECT_EQ(reader.little<uint16_t>(), 0x0201);
  EXPECT_EQ(reader.big<uint16_t>(), 0x0304);
  EXPECT_EQ(reader.little<int16_t>(), -1);
  EXPECT_EQ(reader.left(), 0u);
}

TEST(ByteReader, NeverLeavesItsBytes) {
  const Bytes bytes = make_bytes("a\nbc", "file");
  ByteReader reader(bytes);
  EXPECT_EQ(reader.take_line(), "a");
  for (const std::function<void()>& beyond : {std::function<void()>([&] { reader.take(3); }),
                                              {[&] { reader.take(UINT64_MAX); }},
                                              {[&] { reader.seek(5); }},
                                              {[&] { reader.take_line(); }},
                                              {[&] { reader.big<uint32_t>(); }}})
    EXPECT_TRUE(message_of(beyond).starts_with("corrupt data: [file] offset 2: "))
        << message_of(beyond);
  EXPECT_EQ(reader.take_text(2), "bc");  // a failed read moves nothing
}

TEST(Bytes, PartsLieInside) {
  const Bytes bytes = make_bytes("abcdef", "file");
  EXPECT_EQ(bytes.part(2, 3).text(), "cde");
  EXPECT_THROW(bytes.part(4, 3), Error);
  EXPECT_THROW(bytes.part(UINT64_MAX, 2), Error);  // the sum would wrap around
}

TEST(WithWhere, KeepsTheKindAndSaysWhere) {
  EXPECT_EQ(with_where("here", [] { return 4; }), 4);
  EXPECT_EQ(
      message_of([] { with_where("here", [] { fail(ErrorKind::shape, "wrong: got {}", 3); }); }),
      "shape: [here] wrong: got 3");
}

}  // namespace
}  // namespace artel
