#include "artel/data/csv.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz {

void read_untrusted(const Bytes& bytes) {
  const data::Table table = data::parse_csv(bytes);
  if (table.rows == 0) return;
  std::vector<int64_t> rows(table.rows);
  for (int64_t i = 0; i < table.rows; ++i) rows[i] = i;
  data::TableEncoder(table, rows, {}).encode(table, rows);
}

std::vector<std::string> seeds() {
  return {"size,colour,kind\n1.5,red,a\n,\"blue, dark\",a\n-2e1,?,\"say \"\"a\"\"\"\n",
          "1;2;3\r\n4;5;6\r\n", "a\tb\n1\t2\n",
          "\xef\xbb\xbf,a,b\n0,1.6e9,16777217\n1,1e-400,3\n2,N/A,0.5\n"};
}

}  // namespace artel::fuzz
