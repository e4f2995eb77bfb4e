#include "artel/base/error.h"
#include "artel/data/tables/table_encoder.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::csv {

void read(const Bytes& bytes) {
  const data::Table table = data::parse_csv(bytes, {.threads = 1});
  const data::Table pieces = data::parse_csv(bytes, {.threads = 1, .piece_bytes = 5});
  require(pieces.rows == table.rows, ErrorKind::internal, "{} rows in pieces, {} in one",
          pieces.rows, table.rows);
  for (size_t c = 0; c < table.columns.size(); ++c)
    require(pieces.columns[c].codes == table.columns[c].codes &&
                pieces.columns[c].categories == table.columns[c].categories &&
                pieces.columns[c].numbers.size() == table.columns[c].numbers.size(),
            ErrorKind::internal, "column {} differs if it is read in pieces", c);
  if (table.rows == 0) return;
  std::vector<int64_t> rows(table.rows);
  for (int64_t i = 0; i < table.rows; ++i) rows[i] = i;
  data::TableEncoder(table, rows, {}).encode(table, rows);
}

std::vector<std::string> seeds() {
  return {"size,colour,kind\n1.5,red,a\n,\"blue, dark\",a\n-2e1,?,\"say \"\"a\"\"\"\n",
          "a,b\n\"x\ny\",5\" pipe\n1,\"z\"\n", "1;2;3\r\n4;5;6\r\n", "a\tb\n1\t2\n",
          "\xef\xbb\xbf,a,b\n0,1.6e9,16777217\n1,1e-400,3\n2,N/A,0.5\n"};
}

}  // namespace artel::fuzz::csv
