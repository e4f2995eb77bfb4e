# Passes are checked by running the graph before and after them in the reference.
target_link_libraries(artel_graph_test PRIVATE artel_reference)
