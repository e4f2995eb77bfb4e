#include "artel/comm/collectives/message_collectives.h"

namespace artel::comm {
void compare_operations(const Route& route, int rank, Patience& patience) {
  const int size = static_cast<int>(route.members.size());
  if (size == 1) return;
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  const Operation& mine = patience.operation();
  Operation theirs;
  const auto arriving =
      route.receive(patience, previous, std::as_writable_bytes(std::span(&theirs, 1)));
  const auto leaving = route.send(patience, next, std::as_bytes(std::span(&mine, 1)));
  patience.wait_for(route.members[previous], *arriving);
  if (!mine.matches(theirs))
    throw Error(ErrorKind::communication,
                mismatch_message(route.members[rank], mine, route.members[previous], theirs));
  patience.wait_for(route.members[next], *leaving);
}

}  // namespace artel::comm
