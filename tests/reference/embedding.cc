#include "artel/base/error.h"
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// Calls body(place of the result, place in the table) for each element of the result.
template <typename Body>
void for_each_looked_up(const Call& call, const Array& indices, const Shape& table,
                        const Body& body) {
  // For a shard: consecutive rows of a table with more.
  const int64_t first = call.attributes().integer("first_row", 0);
  const int64_t all = call.attributes().integer("all_rows", table[0]);
  for (size_t i = 0; i < indices.data.size(); ++i) {
    const int64_t row = static_cast<int64_t>(indices.data[i]) - first;
    require(row + first >= 0 && row + first < all, ErrorKind::invalid_argument,
            "[reference] embedding: got the index {}, expected 0 to {}", row + first, all - 1);
    if (row < 0 || row >= table[0]) continue;
    for (int64_t c = 0; c < table[1]; ++c)
      body(i * static_cast<size_t>(table[1]) + static_cast<size_t>(c),
           static_cast<size_t>(row * table[1] + c));
  }
}

Array table_gradient(const Call& call, const Array& dy, const Array& indices, const Shape& table) {
  Array sum = zeros(table);
  for_each_looked_up(call, indices, table,
                     [&](size_t from, size_t to) { sum.data[to] += dy.data[from]; });
  return sum;
}

Arrays embedding(const Call& call) {
  Array y = zeros(call.out_shape());
  for_each_looked_up(call, call.in(0), call.in(1).shape,
                     [&](size_t to, size_t from) { y.data[to] = call.in(1).data[from]; });
  return {y};
}

Arrays embedding_gradient(const Call& call) {
  return {{}, table_gradient(call, call.dy(), call.in(0), call.in(1).shape)};
}

Arrays embedding_backward(const Call& call) {
  Array sum = table_gradient(call, call.in(0), call.in(1), call.out_shape());
  for (size_t i = 0; call.count() == 3 && i < sum.data.size(); ++i)
    sum.data[i] += call.in(2).data[i];
  return {sum};
}

}  // namespace

std::vector<Rule> embedding_rules() {
  return {{"embedding", embedding, embedding_gradient}, {"embedding_backward", embedding_backward}};
}

}  // namespace artel::reference
