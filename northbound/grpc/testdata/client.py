"""Declares an interface and a route, waits for both, and prints their states."""
import sys

import grpc
from ligato.configurator import configurator_pb2, configurator_pb2_grpc
from ligato.generic import manager_pb2, manager_pb2_grpc

channel = grpc.insecure_channel(sys.argv[1])
agent = configurator_pb2_grpc.ConfiguratorServiceStub(channel)
source = [("datasrc", "python")]

request = configurator_pb2.UpdateRequest(wait_done=True)
request.update.linux_config.interfaces.add(name="if1")
request.update.linux_config.routes.add(dst_network="10.1.0.0/16", outgoing_interface="if1")
agent.Update(request, timeout=60, metadata=source)
print("declared")

bad = configurator_pb2.UpdateRequest()
for i in range(1000):
    bad.update.linux_config.interfaces.add(name="bad%d" % i, mtu=10000)
try:
    agent.Update(bad, timeout=60, metadata=source + [("revert", "true")])
except grpc.RpcError as error:
    print(error.code().name, error.details().split(",")[0])

for one in manager_pb2_grpc.ManagerServiceStub(channel).GetConfig(manager_pb2.GetConfigRequest()).items:
    print(one.item.id.name, one.status.status)
