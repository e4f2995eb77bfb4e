#include "artel/base/file.h"
#include "artel/data/tables/csv_reader.h"
#include "artel/data/tables/table_encoder.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::table {
namespace {

const std::string kTable = "size,colour,kind\n1.5,red,a\n2,blue,b\n-3,,a\n";

data::Table small() { return data::parse_csv(make_bytes(kTable, "table"), {.threads = 1}); }

}  // namespace

// table.json of a run, and rows that are encoded by it. What can be read is written as the same.
void read(const Bytes& bytes) {
  static const TemporaryFolder folder;
  const auto file = folder / "fuzz.json";
  write_input(file, bytes.text());
  with_name(bytes, [&] {
    const auto encoder = data::TableEncoder::load(file);
    const std::string written = encoder->text();
    write_input(file, written);
    require(data::TableEncoder::load(file)->text() == written, ErrorKind::internal,
            "a table changed when it was written and read:\n{}", written);
    const data::Table rows = small();
    encoder->encode(rows, {0, 1, 2});
  });
}

std::vector<std::string> seeds() {
  const data::Table rows = small();
  const std::vector<int64_t> all = {0, 1, 2};
  return {data::TableEncoder(rows, all, {}).text(),
          data::TableEncoder(rows, all, {.target = "size"}).text()};
}

}  // namespace artel::fuzz::table
