#include "artel/data/tables/parquet.h"

namespace artel::data {

Bytes parquet_as_csv(const Bytes& file) {
  fail(ErrorKind::unsupported,
       "[{}] is a Parquet file, which this program cannot read: Arrow's C++ library was not "
       "installed when it was built; try a CSV file",
       file.name);
}

}  // namespace artel::data
